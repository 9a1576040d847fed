"""Older decoders with layer norms, biases and a two-matrix MLP.

GPT-NeoX and Pythia, GPT-Neo, GPT-J, CodeGen, Phi-1 to Phi-2, OPT, XGLM, BLOOM, MPT, Persimmon,
StarCoder (GPT-BigCode). Source: the model classes of transformers 5.24 under those names. Learned
positions are a table that is only looked up; rotary, ALiBi and sine positions store nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.readers.families._common import require
from ledgerkit.readers.fields import MAX_CONTEXT, MAX_LAYERS, MAX_VOCAB, Fields
from ledgerkit.readers.rows import Architecture, Layer, Row, attention_row, ffn_row
from ledgerkit.spec.attention import SoftmaxAttention
from ledgerkit.spec.feed_forward import DenseFfn

if TYPE_CHECKING:
    from ledgerkit.spec.weights import Split


class Names(NamedTuple):
    """Tensor names of one model type."""

    layer: str
    attention_norm: str
    qkv: tuple[str, ...]
    """One fused projection, or three."""
    output: str
    ffn_norm: str | None
    """None = the block before the attention norm feeds both."""
    inner: str
    outer: str
    embedding: str
    final_norm: str
    head: str
    positions: str | None = None
    embedding_norm: str | None = None


_SPLIT = ("q_proj", "k_proj", "v_proj")
NAMES = {
    "gpt_neox": Names(
        "gpt_neox.layers.{layer}.",
        "input_layernorm",
        ("attention.query_key_value",),
        "attention.dense",
        "post_attention_layernorm",
        "mlp.dense_h_to_4h",
        "mlp.dense_4h_to_h",
        "gpt_neox.embed_in",
        "gpt_neox.final_layer_norm",
        "embed_out",
    ),
    "gptj": Names(
        "transformer.h.{layer}.",
        "ln_1",
        tuple(f"attn.{name}" for name in _SPLIT),
        "attn.out_proj",
        None,
        "mlp.fc_in",
        "mlp.fc_out",
        "transformer.wte",
        "transformer.ln_f",
        "lm_head",
    ),
    "phi": Names(
        "model.layers.{layer}.",
        "input_layernorm",
        tuple(f"self_attn.{name}" for name in _SPLIT),
        "self_attn.dense",
        None,
        "mlp.fc1",
        "mlp.fc2",
        "model.embed_tokens",
        "model.final_layernorm",
        "lm_head",
    ),
    "opt": Names(
        "model.decoder.layers.{layer}.",
        "self_attn_layer_norm",
        tuple(f"self_attn.{name}" for name in _SPLIT),
        "self_attn.out_proj",
        "final_layer_norm",
        "fc1",
        "fc2",
        "model.decoder.embed_tokens",
        "model.decoder.final_layer_norm",
        "lm_head",
        positions="model.decoder.embed_positions",
    ),
    "bloom": Names(
        "h.{layer}.",
        "input_layernorm",
        ("self_attention.query_key_value",),
        "self_attention.dense",
        "post_attention_layernorm",
        "mlp.dense_h_to_4h",
        "mlp.dense_4h_to_h",
        "word_embeddings",
        "ln_f",
        "lm_head",
        embedding_norm="word_embeddings_layernorm",
    ),
    "gpt_bigcode": Names(
        "transformer.h.{layer}.",
        "ln_1",
        ("attn.c_attn",),
        "attn.c_proj",
        "ln_2",
        "mlp.c_fc",
        "mlp.c_proj",
        "transformer.wte",
        "transformer.ln_f",
        "lm_head",
        positions="transformer.wpe",
    ),
    "mpt": Names(
        "transformer.blocks.{layer}.",
        "norm_1",
        ("attn.Wqkv",),
        "attn.out_proj",
        "norm_2",
        "ffn.up_proj",
        "ffn.down_proj",
        "transformer.wte",
        "transformer.norm_f",
        "lm_head",
    ),
    "xglm": Names(
        "model.layers.{layer}.",
        "self_attn_layer_norm",
        tuple(f"self_attn.{name}" for name in _SPLIT),
        "self_attn.out_proj",
        "final_layer_norm",
        "fc1",
        "fc2",
        "model.embed_tokens",
        "model.layer_norm",
        "lm_head",
    ),
}
NAMES["codegen"] = NAMES["gptj"]._replace(qkv=("attn.qkv_proj",))
NAMES["gpt_neo"] = NAMES["gpt_bigcode"]._replace(
    qkv=tuple(f"attn.attention.{name}" for name in _SPLIT), output="attn.attention.out_proj"
)
NAMES["persimmon"] = NAMES["gpt_neox"]._replace(
    layer=NAMES["phi"].layer, qkv=("self_attn.query_key_value",), output="self_attn.dense",
    embedding="model.embed_tokens", final_norm="model.final_layernorm", head="lm_head",
)  # fmt: skip
DEFAULTS: dict[str, Mapping[str, Any]] = {
    "gpt_neox": {
        "max_position_embeddings": 2048,
        "attention_bias": True,
        "tie_word_embeddings": False,
    },
    "gptj": {"n_inner": None, "tie_word_embeddings": False},
    "phi": {
        "max_position_embeddings": 2048,
        "qk_layernorm": False,
        "tie_word_embeddings": False,
    },
    "opt": {
        "max_position_embeddings": 2048,
        "enable_bias": True,
        "layer_norm_elementwise_affine": True,
        "do_layer_norm_before": True,
        "word_embed_proj_dim": None,
        "_remove_final_layer_norm": False,
        "tie_word_embeddings": True,
    },
    "bloom": {"tie_word_embeddings": True, "seq_length": 2048},
    "gpt_bigcode": {
        "n_inner": None,
        "multi_query": True,
        "tie_word_embeddings": True,
    },
    "mpt": {"max_seq_len": 2048, "tie_word_embeddings": True},
    "persimmon": {
        "max_position_embeddings": 16384,
        "qk_layernorm": True,
        "tie_word_embeddings": False,
    },
    "gpt_neo": {
        "max_position_embeddings": 2048,
        "intermediate_size": None,
        "attention_types": [[["global", "local"], 12]],
        "window_size": 256,
        "tie_word_embeddings": True,
    },
    "codegen": {"n_positions": 2048, "n_inner": None, "tie_word_embeddings": False},
    "xglm": {"max_position_embeddings": 2048, "tie_word_embeddings": True},
}
OPT_OFFSET = 2
"""Rows of OPT's position table that no position uses."""


class _Shape(NamedTuple):
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    inner: int
    vocab: int
    context: int


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a decoder of equal layers."""
    names = NAMES[model_type]
    shape = _shape(fields, model_type)
    _special(fields, model_type, shape)
    tie = fields.flag("tie_word_embeddings")
    qkv_bias, o_bias, mlp_bias = _biases(fields, model_type)
    parts = _norm_parts(fields, model_type)
    head_dim = shape.hidden // shape.heads
    qk_norm = model_type in ("phi", "persimmon") and fields.flag("qk_layernorm")
    rows = [
        *_norm(names.layer + names.attention_norm, shape.hidden, parts, attention=True),
        *_attention(names, shape, head_dim, qkv_bias=qkv_bias, o_bias=o_bias),
    ]
    if qk_norm:
        rows += [
            attention_row(f"{names.layer}self_attn.{part}_layernorm.{kind}", head_dim,
                          use="vector", split="none")
            for part in "qk" for kind in ("weight", "bias")
        ]  # fmt: skip
    if names.ffn_norm is not None:
        rows += _norm(names.layer + names.ffn_norm, shape.hidden, parts)
    for name, wide in ((names.inner, True), (names.outer, False)):
        size = (shape.inner, shape.hidden) if wide else (shape.hidden, shape.inner)
        rows.append(ffn_row(f"{names.layer}{name}.weight", *size, account="dense", split="tp"))
        if mlp_bias:
            rows.append(ffn_row(f"{names.layer}{name}.bias", size[0], account="dense",
                                use="vector", split="tp" if wide else "none"))  # fmt: skip

    def layer(window: int | None) -> Layer:
        attention = SoftmaxAttention(
            num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads,
            head_dim=head_dim, v_head_dim=head_dim, qk_norm=qk_norm, window=window,
        )  # fmt: skip
        return Layer(attention, DenseFfn(intermediate_size=shape.inner, matrices=2), tuple(rows))

    table = _table(fields, model_type, shape, parts, tie=tie)
    windows = _windows(fields, model_type, shape.layers)
    kinds = {window: layer(window) for window in set(windows)}
    layers = [kinds[window] for window in windows]
    return Architecture(shape.hidden, shape.vocab, shape.context, tie, layers, table)


def _shape(fields: Fields, model_type: str) -> _Shape:
    """Return the sizes, under the names that this model type gives them."""
    hidden = fields.size("hidden_size", "n_embd", "n_embed", "d_model")
    layers = fields.size("num_hidden_layers", "n_layer", "n_layers", "num_layers", most=MAX_LAYERS)
    heads = fields.size("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads")
    require(hidden % heads == 0, "the hidden size must be a multiple of the number of heads",
            (hidden, heads))  # fmt: skip
    kv_heads = heads
    if model_type == "phi":
        kv_heads = fields.size("num_key_value_heads", default=heads, rule="num_attention_heads")
    elif model_type == "gpt_bigcode" and fields.flag("multi_query"):
        kv_heads = 1
    require(heads % kv_heads == 0, "num_attention_heads must be a multiple of num_key_value_heads",
            (heads, kv_heads))  # fmt: skip
    wide = 4 * hidden
    if model_type in ("bloom", "mpt"):
        inner = wide
        fields.only("n_inner", inner, why="the MLP of this model type is 4 x hidden_size wide")
    elif model_type in ("gptj", "codegen", "gpt_bigcode"):
        inner = fields.size("n_inner", default=wide, rule="4 x n_embd")
    elif model_type == "gpt_neo":
        inner = fields.size("intermediate_size", default=wide, rule="4 x hidden_size")
    else:
        inner = fields.size("ffn_dim" if model_type in ("opt", "xglm") else "intermediate_size")
    context = fields.size("max_position_embeddings", "n_positions", "seq_length", "max_seq_len",
                          most=MAX_CONTEXT)  # fmt: skip
    vocab = fields.size("vocab_size", most=MAX_VOCAB)
    return _Shape(hidden, layers, heads, kv_heads, inner, vocab, context)


def _special(fields: Fields, model_type: str, shape: _Shape) -> None:
    """Take note of the fields that one model type alone has."""
    if model_type == "gpt_neox":
        fields.ignore("unused", "use_parallel_residual")
    elif model_type == "bloom":
        fields.ignore("unused", "apply_residual_connection_post_layernorm", "skip_bias_add",
                      "skip_bias_add_qkv")  # fmt: skip
        fields.ignore("runtime", "slow_but_exact", "attention_softmax_in_fp32",
                      "bias_dropout_fusion", "masked_softmax_fusion", "offset_alibi")  # fmt: skip
    elif model_type == "gpt_bigcode":
        fields.only("num_key_value_heads", shape.kv_heads, why="multi_query says it")
        fields.ignore("runtime", "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
                      "inference_runner", "pre_allocate_kv_cache", "pad_key_length",
                      "validate_runner_input", "max_batch_size",
                      "max_sequence_length")  # fmt: skip
    elif model_type == "opt":
        width = fields.size("word_embed_proj_dim", default=shape.hidden, rule="hidden_size")
        require(width == shape.hidden, "embeddings narrower than the model are not read",
                (width, shape.hidden), "such a model needs a reader of its own")  # fmt: skip
        fields.ignore("training", "layerdrop")
    elif model_type == "xglm":
        fields.ignore("training", "layerdrop", "activation_dropout")
        fields.ignore("scalar", "scale_embedding")
    elif model_type == "codegen":
        fields.ignore("unused", "n_ctx")
    elif model_type == "mpt":
        _mpt(fields)
    fields.ignore("scalar", "scale_attn_weights", "scale_attn_by_inverse_layer_idx")
    fields.ignore("rotary", "rotary")


def _mpt(fields: Fields) -> None:
    """Refuse what the code of the checkpoints can do and the model class cannot."""
    fields.only("no_bias", True, why="biases are not implemented for MPT")
    fields.only("expansion_ratio", 4, why="the MLP of this model type is 4 x d_model wide")
    fields.ignore("unused", "learned_pos_emb")
    fields.ignore("runtime", "init_device", "norm_type", "verbose")
    fields.ignore("initialisation", "init_config")
    fields.ignore("training", "embedding_fraction", "emb_pdrop")
    fields.ignore("tokenizer", "tokenizer_name")
    inner = fields.section("attn_config")
    if inner is None:
        return
    inner.only("attn_type", "multihead_attention", why="shared keys are not implemented for MPT")
    inner.only("alibi", True, why="learned positions are not implemented for MPT")
    inner.only("qk_ln", False, why="q and k norms are not implemented for MPT")
    inner.only("prefix_lm", False, why="attention in both directions has no decode phase")
    inner.ignore("runtime", "attn_impl", "attn_uses_sequence_id")
    inner.ignore("scalar", "clip_qkv", "softmax_scale", "alibi_bias_max")
    inner.finish()


def _windows(fields: Fields, model_type: str, layers: int) -> list[int | None]:
    """Return the window of each layer; GPT-Neo lists words that repeat."""
    if model_type != "gpt_neo":
        return [None] * layers
    window = fields.size("window_size")
    name, blocks = fields.raw("attention_types")
    words: list[str] = []
    for block in blocks if isinstance(blocks, (list, tuple)) else [blocks]:
        known = isinstance(block, (list, tuple)) and len(block) == 2 and (
            isinstance(block[0], (list, tuple)) and set(map(str, block[0])) <= {"global", "local"}
            and isinstance(block[1], int) and 0 < block[1] <= MAX_LAYERS
            and len(block[0]) <= MAX_LAYERS
        )  # fmt: skip
        require(known, f"{name} must list [[words], times] with the words global and local", block)
        words += list(block[0]) * block[1]
    require(len(words) == layers, f"{name} must have one entry for each layer",
            (len(words), layers))  # fmt: skip
    fields.only("attention_layers", words, why=f"it contradicts {name}")
    return [window if word == "local" else None for word in words]


def _biases(fields: Fields, model_type: str) -> tuple[bool, bool, bool]:
    """Return whether q, k and v have biases, the output projection and the MLP."""
    if model_type == "opt":
        bias = fields.flag("enable_bias")
        return bias, bias, bias
    if model_type == "gpt_neox":
        bias = fields.flag("attention_bias")
        return bias, bias, True
    known = {"gptj": (False, False, True), "gpt_neo": (False, True, True),
             "mpt": (False, False, False)}  # fmt: skip
    return known.get("gptj" if model_type == "codegen" else model_type, (True, True, True))


def _norm_parts(fields: Fields, model_type: str) -> tuple[str, ...]:
    """Return which tensors a layer norm has."""
    if model_type == "mpt":
        return (".weight",)
    affine = model_type != "opt" or fields.flag("layer_norm_elementwise_affine")
    return (".weight", ".bias") if affine else ()


def _norm(name: str, hidden: int, parts: tuple[str, ...], *, attention: bool = False) -> list[Row]:
    """Return a layer norm."""
    if attention:
        return [attention_row(name + part, hidden, use="vector", split="none", account="norms")
                for part in parts]  # fmt: skip
    return [ffn_row(name + part, hidden, use="vector", account="norms") for part in parts]


def _attention(
    names: Names, shape: _Shape, head_dim: int, *, qkv_bias: bool, o_bias: bool
) -> list[Row]:
    """Return the projections; q, k and v may be slices of one stored tensor."""
    hidden = shape.hidden
    kv_width = shape.kv_heads * head_dim
    slices: list[tuple[str, int, Split]] = [(names.qkv[0], hidden, "tp")]
    if len(names.qkv) == 1:
        slices.append((names.qkv[0], 2 * kv_width, "kv_heads"))
    else:
        slices += [(name, kv_width, "kv_heads") for name in names.qkv[1:]]
    rows = []
    for name, width, split in slices:
        rows.append(attention_row(f"{names.layer}{name}.weight", width, hidden, split=split))
        if qkv_bias:
            rows.append(attention_row(f"{names.layer}{name}.bias", width, use="vector",
                                      split=split))  # fmt: skip
    rows.append(attention_row(f"{names.layer}{names.output}.weight", hidden, hidden))
    if o_bias:
        rows.append(attention_row(f"{names.layer}{names.output}.bias", hidden, use="vector",
                                  split="none"))  # fmt: skip
    return rows


def _table(
    fields: Fields, model_type: str, shape: _Shape, parts: tuple[str, ...], *, tie: bool
) -> list[Row]:
    """Return embeddings, positions, norms around the layers, and the head."""
    names, size = NAMES[model_type], (shape.vocab, shape.hidden)
    rows = [ffn_row(names.embedding + ".weight", *size, account="vocab", split="vocab",
                    use="head" if tie else "lookup")]  # fmt: skip
    if names.positions is not None:
        extra = OPT_OFFSET if model_type == "opt" else 0
        rows.append(ffn_row(names.positions + ".weight", shape.context + extra, shape.hidden,
                            account="vocab", use="lookup"))  # fmt: skip
    norms = [names.embedding_norm, names.final_norm]
    if model_type == "opt":
        removed = fields.flag("_remove_final_layer_norm")
        if not fields.flag("do_layer_norm_before") or removed:
            norms = []
    rows += [
        ffn_row(norm + part, shape.hidden, account="vocab", use="vector")
        for norm in norms if norm is not None
        for part in parts
    ]  # fmt: skip
    if not tie:
        rows.append(ffn_row(names.head + ".weight", *size, account="vocab", split="vocab",
                            use="head"))  # fmt: skip
    if model_type in ("gptj", "codegen", "phi"):
        rows.append(ffn_row(names.head + ".bias", shape.vocab, account="vocab", split="vocab",
                            use="vector"))  # fmt: skip
    return rows
