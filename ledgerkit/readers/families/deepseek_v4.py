"""DeepSeek-V4: compressed attention, hyper-connections, hash-routed first layers.

Sources: ``models/deepseek_v4`` of transformers 5.24 and the headers of DeepSeek-V4-Pro, whose
tensor names and dtypes are used. One wide head is key and value at once. Layers of ratio 4
compress four tokens with overlap and select entries with an indexer; layers of ratio 128 compress
without one; ratio 0 is the window alone. Experts are stored in mxfp4, block scales as single bytes
(ue8m0).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ledgerkit.errors import ConfigError
from ledgerkit.readers.families._common import Frame, draft_row, read_frame, require
from ledgerkit.readers.fields import MAX_LAYERS, Fields
from ledgerkit.readers.rows import Architecture, Layer, MtpPlan, Row, attention_row, ffn_row
from ledgerkit.spec.attention import CompressedAttention, Indexer
from ledgerkit.spec.feed_forward import MoeFfn

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "deepseek_v4": {
        "max_position_embeddings": 1048576,
        "tie_word_embeddings": False,
        "num_key_value_heads": 1,
        "head_dim": 512,
        "qk_rope_head_dim": 64,
        "q_lora_rank": 1024,
        "num_experts_per_tok": 6,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "sliding_window": 128,
        "o_groups": 8,
        "o_lora_rank": 1024,
        "index_n_heads": 64,
        "index_head_dim": 128,
        "index_topk": 512,
        "hc_mult": 4,
        "num_hash_layers": 3,
        "num_nextn_predict_layers": 1,
        "expert_dtype": "fp4",
    }
}
_INDEXED = 4
"""The ratio at which a layer selects among its compressed entries."""
_TYPES = {
    "sliding_attention": 0,
    "compressed_sparse_attention": _INDEXED,
    "heavily_compressed_attention": 128,
}


class _Sizes(NamedTuple):
    hidden: int
    heads: int
    head_dim: int
    rope: int
    window: int
    q_rank: int
    o_groups: int
    o_rank: int
    indexer: Indexer
    streams: int
    experts: int
    topk: int
    width: int
    shared: int
    vocab: int
    expert_dtype: str | None


def read(fields: Fields, _model_type: str) -> Architecture:
    """Read a DeepSeek-V4 decoder."""
    frame = read_frame(fields)
    size = _read_sizes(fields, frame)
    blocks = fields.count("num_nextn_predict_layers", most=MAX_LAYERS)
    ratios, last = _ratios(fields, frame, blocks)
    hashed = _hash_layers(fields, frame)
    pairs = list(zip(ratios, hashed, strict=True))
    layers = {pair: _layer(size, *pair) for pair in dict.fromkeys(pairs)}
    table = [
        ffn_row("embed.weight", frame.vocab, frame.hidden, account="vocab", split="vocab",
                use="head" if frame.tie else "lookup"),
        ffn_row("norm.weight", frame.hidden, account="vocab", use="vector"),
        *_hyper_head(size, ""),
    ]  # fmt: skip
    if not frame.tie:
        table.append(ffn_row("head.weight", frame.vocab, frame.hidden, account="vocab",
                             split="vocab", use="head"))  # fmt: skip
    plan = frame.architecture([layers[pair] for pair in pairs], table)
    plan.formats = {"fp8_block128": "fp8_block128_e8m0"}
    if blocks:
        plan.mtp = _mtp(size, blocks, _layer(size, last, hashed=False))
    return plan


def _read_sizes(fields: Fields, frame: Frame) -> _Sizes:
    require(fields.size("num_key_value_heads") == 1, "DeepSeek-V4 has one key/value head",
            fields.values.get("num_key_value_heads"))  # fmt: skip
    fields.only("attention_bias", False, why="biases are not implemented")
    fields.only("mlp_bias", False, why="biases are not implemented")
    fields.ignore("scalar", "hc_sinkhorn_iters")
    fields.ignore("rotary", "compress_rope_parameters")
    # fields of DeepSeek-V3 that some files carry along
    fields.ignore("unused", "qk_nope_head_dim", "v_head_dim", "kv_lora_rank", "n_group",
                  "topk_group", "first_k_dense_replace")  # fmt: skip
    heads, head_dim = fields.size("num_attention_heads"), fields.size("head_dim")
    groups = fields.size("o_groups")
    require(heads % groups == 0, "o_groups must divide num_attention_heads", (heads, groups))
    width = fields.size("moe_intermediate_size", "intermediate_size")
    fields.only("n_shared_experts", 1, why="this model type has one shared expert")
    quantized = fields.values.get("quantization_config")
    fp4 = fields.text("expert_dtype", allowed=("fp4", "fp8")) == "fp4"
    if isinstance(quantized, Mapping) and quantized.get("expert_dtype") is not None:
        fp4 = quantized["expert_dtype"] == "fp4"
    return _Sizes(
        hidden=frame.hidden,
        heads=heads,
        head_dim=head_dim,
        rope=fields.count("qk_rope_head_dim"),
        window=fields.size("sliding_window"),
        q_rank=fields.size("q_lora_rank"),
        o_groups=groups,
        o_rank=fields.size("o_lora_rank"),
        indexer=Indexer(
            num_heads=fields.size("index_n_heads"),
            head_dim=fields.size("index_head_dim"),
            topk=fields.size("index_topk"),
        ),
        streams=fields.size("hc_mult"),
        experts=fields.size("n_routed_experts", "num_local_experts"),
        topk=fields.size("num_experts_per_tok"),
        width=width,
        shared=width,
        vocab=frame.vocab,
        expert_dtype="mxfp4" if quantized and fp4 else None,
    )


def _ratios(fields: Fields, frame: Frame, blocks: int) -> tuple[list[int], int]:
    """Return the compression ratio of each layer, and the one of the MTP blocks."""
    types = fields.words("layer_types", allowed=tuple(_TYPES), default=None)
    listed = fields.integers("compress_ratios", default=None)
    rates = fields.section("compress_rates")
    known = dict(_TYPES)
    if rates is not None:
        for name in ("compressed_sparse_attention", "heavily_compressed_attention"):
            known[name] = rates.size(name, default=_TYPES[name], rule="the class default")
        rates.finish()
    if types is not None:
        listed = [known[kind] for kind in types]
    if listed is None:  # the published models differ in it, and in the class default
        raise ConfigError("the config does not say how each layer compresses",
                          given={"compress_ratios": None, "layer_types": None},
                          allowed="a ratio or a type for each layer",
                          fix="state compress_ratios or layer_types")  # fmt: skip
    require(len(listed) in (frame.layers, frame.layers + blocks),
            "compress_ratios must have one entry for each layer, and may have one for MTP",
            len(listed))  # fmt: skip
    allowed = {0, known["compressed_sparse_attention"], known["heavily_compressed_attention"]}
    require(set(listed) <= allowed, "compress_ratios holds ratios that no reader knows",
            sorted(set(listed) - allowed))  # fmt: skip
    require(known["compressed_sparse_attention"] == _INDEXED, "the indexed ratio must be 4",
            known["compressed_sparse_attention"])  # fmt: skip
    return listed[: frame.layers], listed[frame.layers] if len(listed) > frame.layers else 0


def _hash_layers(fields: Fields, frame: Frame) -> list[bool]:
    """Return which layers look their experts up by token id."""
    types = fields.words("mlp_layer_types", frame.layers, allowed=("hash_moe", "moe"), default=None)
    count = fields.count("num_hash_layers", most=MAX_LAYERS)
    if types is not None:
        return [kind == "hash_moe" for kind in types]
    return [index < count for index in range(frame.layers)]


AT = "layers.{layer}."


def _layer(size: _Sizes, ratio: int, hashed: bool) -> Layer:  # noqa: FBT001
    indexed = ratio == _INDEXED
    attention = CompressedAttention(
        num_attention_heads=size.heads,
        head_dim=size.head_dim,
        qk_rope_head_dim=size.rope,
        window=size.window,
        ratio=ratio,
        overlap=indexed,
        q_lora_rank=size.q_rank,
        o_groups=size.o_groups,
        o_lora_rank=size.o_rank,
        indexer=size.indexer if indexed else None,
    )
    moe = MoeFfn(
        num_experts=size.experts,
        num_experts_per_tok=size.topk,
        moe_intermediate_size=size.width,
        shared_intermediate_size=size.shared,
    )
    rows = (*_attention_rows(size, ratio), *_moe_rows(size, hashed=hashed), *_hyper_rows(size))
    return Layer(attention, moe, rows)


def _attention_rows(size: _Sizes, ratio: int) -> list[Row]:
    at, width = AT + "attn.", size.head_dim
    group_in = size.heads * width // size.o_groups
    group_out = size.o_groups * size.o_rank
    rows = [
        attention_row(AT + "attn_norm.weight", size.hidden, use="vector", split="none",
                      account="norms"),
        attention_row(at + "wq_a.weight", size.q_rank, size.hidden, split="none"),
        attention_row(at + "q_norm.weight", size.q_rank, use="vector", split="none"),
        attention_row(at + "wq_b.weight", size.heads * width, size.q_rank),
        attention_row(at + "wkv.weight", width, size.hidden, split="none"),
        attention_row(at + "kv_norm.weight", width, use="vector", split="none"),
        attention_row(at + "attn_sink", size.heads, use="vector", dtype="fp32"),
        attention_row(at + "wo_a.weight", group_out, group_in),
        attention_row(at + "wo_b.weight", size.hidden, group_out),
    ]  # fmt: skip
    if ratio:
        overlap = 2 if ratio == _INDEXED else 1
        rows += _compressor(at + "compressor.", size.hidden, width, ratio, overlap)
    if ratio == _INDEXED:
        part, heads = at + "indexer.", size.indexer.num_heads
        rows += [
            attention_row(part + "wq_b.weight", heads * size.indexer.head_dim, size.q_rank,
                          split="none", account="indexer"),
            attention_row(part + "weights_proj.weight", heads, size.hidden, split="none",
                          account="indexer", quantizable=False),
            *(row._replace(account="indexer")
              for row in _compressor(part + "compressor.", size.hidden, size.indexer.head_dim,
                                     ratio, 2)),
        ]  # fmt: skip
    return rows


def _compressor(at: str, hidden: int, width: int, ratio: int, overlap: int) -> list[Row]:
    """Return what turns ``ratio`` tokens into one entry; it stays in the plain dtype."""
    return [
        attention_row(at + "ape", ratio, overlap * width, use="vector", split="none",
                      dtype="fp32"),
        attention_row(at + "wkv.weight", overlap * width, hidden, split="none",
                      quantizable=False),
        attention_row(at + "wgate.weight", overlap * width, hidden, split="none",
                      quantizable=False),
        attention_row(at + "norm.weight", width, use="vector", split="none"),
    ]  # fmt: skip


def _moe_rows(size: _Sizes, *, hashed: bool) -> list[Row]:
    at = AT + "ffn."
    inner, outer = (size.width, size.hidden), (size.hidden, size.width)
    rows = [
        ffn_row(AT + "ffn_norm.weight", size.hidden, use="vector", account="norms"),
        ffn_row(at + "gate.weight", size.experts, size.hidden, account="router",
                quantizable=False),
        ffn_row(at + "gate.tid2eid", size.vocab, size.topk, account="router", use="buffer",
                dtype="int64") if hashed else
        ffn_row(at + "gate.bias", size.experts, account="router", use="buffer", dtype="fp32"),
        *(ffn_row(f"{at}experts.{{expert}}.{name}.weight", *shape, account="routed_experts",
                  split="experts", copies=size.experts, routed=True, dtype=size.expert_dtype)
          for name, shape in (("w1", inner), ("w3", inner), ("w2", outer))),
    ]  # fmt: skip
    if size.shared:
        wide = {"w1": (size.shared, size.hidden), "w3": (size.shared, size.hidden),
                "w2": (size.hidden, size.shared)}  # fmt: skip
        rows += [ffn_row(f"{at}shared_experts.{name}.weight", *shape, account="shared_experts",
                         split="tp") for name, shape in wide.items()]  # fmt: skip
    return rows


def _hyper_rows(size: _Sizes) -> list[Row]:
    """Return the hyper-connections around both blocks, in fp32."""
    mixes = (2 + size.streams) * size.streams
    return [
        ffn_row(f"{AT}hc_{block}_{name}", *shape, account="residual", dtype="fp32",
                use="vector" if len(shape) == 1 else "linear")
        for block in ("attn", "ffn")
        for name, shape in (("fn", (mixes, size.streams * size.hidden)), ("base", (mixes,)),
                            ("scale", (3,)))
    ]  # fmt: skip


def _hyper_head(size: _Sizes, at: str) -> list[Row]:
    shapes = {"fn": (size.streams, size.streams * size.hidden), "base": (size.streams,),
              "scale": (1,)}  # fmt: skip
    return [ffn_row(f"{at}hc_head_{name}", *shape, account="residual", dtype="fp32",
                    use="vector" if len(shape) == 1 else "linear")
            for name, shape in shapes.items()]  # fmt: skip


def _mtp(size: _Sizes, blocks: int, layer: Layer) -> MtpPlan:
    """Return the MTP blocks: a decoder layer behind two projections, with a head of its own mix."""
    at = "mtp.{layer}."
    rows = tuple(row._replace(name=row.name.replace(AT, at)) for row in layer.rows)
    extra = (
        *(draft_row(f"{at}{name}.weight", size.hidden, size.hidden)._replace(quantizable=True)
          for name in ("e_proj", "h_proj")),
        *(draft_row(f"{at}{name}.weight", size.hidden, use="vector")
          for name in ("enorm", "hnorm", "norm")),
        *(row._replace(ledger="scheduling", account="draft") for row in _hyper_head(size, at)),
    )  # fmt: skip
    return MtpPlan(blocks, Layer(layer.attention, layer.ffn, rows), 0, extra)
