"""What most families read the same way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from ledgerkit.errors import ConfigError
from ledgerkit.readers.blocks import vocabulary
from ledgerkit.readers.fields import MAX_CONTEXT, MAX_LAYERS, MAX_VOCAB, Fields
from ledgerkit.readers.rows import Architecture, Layer, MtpPlan, Row

if TYPE_CHECKING:
    from ledgerkit.spec.weights import Split, Use

__all__ = [
    "Frame",
    "draft_row",
    "hunyuan_extras",
    "joint_rows",
    "pattern_windows",
    "read_frame",
    "read_head_dim",
    "read_heads",
    "require",
    "says",
    "state_dtype",
    "window_flags",
]


class Frame(NamedTuple):
    """The outer measures of a decoder."""

    hidden: int
    layers: int
    vocab: int
    context: int
    tie: bool

    def architecture(
        self,
        layers: Iterable[Layer],
        table: list[Row] | None = None,
        mtp: MtpPlan | None = None,
        dtype: str | None = None,
    ) -> Architecture:
        """Return the architecture; ``table`` = embedding, norm and head, the usual if None."""
        return Architecture(
            hidden_size=self.hidden,
            vocab_size=self.vocab,
            max_position_embeddings=self.context,
            tie_word_embeddings=self.tie,
            layers=list(layers),
            globals=vocabulary(self.hidden, self.vocab, tie=self.tie) if table is None else table,
            mtp=mtp,
            dtype=dtype,
        )


def read_frame(fields: Fields) -> Frame:
    """Return hidden size, layers, vocabulary, longest context and whether embeddings are tied."""
    return Frame(
        hidden=fields.size("hidden_size"),
        layers=fields.size("num_hidden_layers", most=MAX_LAYERS),
        vocab=fields.size("vocab_size", most=MAX_VOCAB),
        context=fields.size("max_position_embeddings", most=MAX_CONTEXT),
        tie=fields.flag("tie_word_embeddings"),
    )


def read_heads(fields: Fields) -> tuple[int, int]:
    """Return query heads and key/value heads."""
    heads = fields.size("num_attention_heads")
    kv_heads = fields.size("num_key_value_heads", default=heads, rule="num_attention_heads")
    if heads % kv_heads:
        raise ConfigError("num_attention_heads must be a multiple of num_key_value_heads",
                          given=(heads, kv_heads), fix="correct one of the two")  # fmt: skip
    return heads, kv_heads


def read_head_dim(fields: Fields, hidden: int, heads: int) -> int:
    """Return head_dim, or hidden_size / num_attention_heads where the file states none."""
    if not fields.has("head_dim") and "head_dim" not in fields.defaults and hidden % heads:
        raise ConfigError("hidden_size must be a multiple of num_attention_heads when head_dim is "
                          "not stated", given=(hidden, heads), fix="state head_dim")  # fmt: skip
    return fields.size("head_dim", default=hidden // heads,
                       rule="hidden_size / num_attention_heads")  # fmt: skip


def require(condition: object, what: str, given: object, fix: str = "correct the config") -> None:
    """Refuse a config that contradicts itself."""
    if not condition:
        raise ConfigError(what, given=given, fix=fix)


def says(fields: Fields, other: str, *, answer: bool | str) -> bool:
    """Return a fixed answer (which a stated field must not contradict), or what a field says."""
    if isinstance(answer, str):
        return fields.flag(answer)
    fields.only(other, answer, why=f"this model type is fixed to {other} = {answer}")
    if other == "attention_bias":
        fields.only("qkv_bias", answer, why=f"this model type is fixed to qkv_bias = {answer}")
    return answer


def window_flags(types: Sequence[str], sliding: str = "sliding_attention") -> list[bool]:
    """Return which layers have a window."""
    return [kind == sliding for kind in types]


def pattern_windows(fields: Fields, layers: int, *names: str) -> tuple[int | None, list[bool]]:
    """Return the window and which layers have it: listed, or all but every n-th.

    A pattern may be a number, or letters that repeat: L for a window, G for none.
    """
    window = fields.optional("sliding_window")
    types = fields.words("layer_types", layers, default=None,
                         allowed=("full_attention", "sliding_attention"))  # fmt: skip
    if types is not None or window is None:
        fields.ignore("unused" if types is None else "duplicate", *names)
        return window, [
            window is not None and flag for flag in window_flags(types or [""] * layers)
        ]
    stated = fields.values.get(names[0])
    if isinstance(stated, str):
        require(stated and set(stated) <= set("LG"), f"{names[0]} must be a number or made of the "
                "letters L and G", stated)  # fmt: skip
        fields.raw(names[0])
        return window, [stated[index % len(stated)] == "L" for index in range(layers)]
    every = fields.size(*names, most=MAX_LAYERS)
    fields.record.use(fields.path + "layer_types", f"one full layer in {every}", "derived",
                      names[0])  # fmt: skip
    return window, [(index + 1) % every != 0 for index in range(layers)]


def hunyuan_extras(fields: Fields) -> None:
    """Take note of fields that all Hunyuan files share and that shape nothing here.

    They belong to the towers, the classifier and the latent attention of other models of that code.
    """
    for name in ("use_mla", "use_cla", "add_classification_head", "group_limited_greedy"):
        fields.only(name, False, why="not implemented for Hunyuan")
    fields.only("norm_type", "rms", why="this model type has RMS norms")
    fields.ignore("unused", "cla_share_factor", "class_num", "dense_list", "pool_type",
                  "skip_cls_token")  # fmt: skip
    fields.ignore("rotary", "position_embedding_xdrope", "use_rotary_pos_emb", "xdrope_section")
    fields.ignore("runtime", "enable_lm_head_fp32")
    fields.ignore("tokenizer", "org_vocab_size", "mask_init_id", "im_newline_id", "im_start_id",
                  "im_end_id", "video_start_id", "video_end_id", "num_media_embeds")  # fmt: skip
    fields.ignore("tower", *(name for name in fields.values
                             if str(name).startswith(("vit_", "anyres_"))))  # fmt: skip


def draft_row(name: str, *shape: int, use: Use = "linear") -> Row:
    """Return a row that exists for drafting only; quantizers leave it alone."""
    split: Split = "vocab" if use == "head" else "none"
    return Row(name, "scheduling", "draft", shape, use=use, split=split, quantizable=False)


def joint_rows(hidden: int, at: str, projection: str, norms: tuple[str, ...]) -> tuple[Row, ...]:
    """Return what an MTP block has beside its decoder layer."""
    return (
        draft_row(f"{at}{projection}.weight", hidden, 2 * hidden),
        *(draft_row(f"{at}{name}.weight", hidden, use="vector") for name in norms),
    )


def state_dtype(fields: Fields, name: str) -> Literal["fp32", "bf16", "fp16"]:
    """Return the dtype in which a recurrent state is kept."""
    words: dict[str, Literal["fp32", "bf16", "fp16"]] = {
        "float32": "fp32",
        "bfloat16": "bf16",
        "float16": "fp16",
    }
    return words[fields.text(name, allowed=tuple(words), default="float32")]
