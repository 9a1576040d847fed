"""Variants of a model: changed fields put where they belong, per-layer lists fitted to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ledgerkit.errors import ConfigError
from ledgerkit.readers.fields import MAX_LAYERS
from ledgerkit.readers.record import Record
from ledgerkit.readers.wrappers import wrapper_of

__all__ = ["apply_replacements"]

T = TypeVar("T")

SPELLINGS: tuple[tuple[str, ...], ...] = (
    ("num_hidden_layers", "n_layer", "num_layers"),
    ("hidden_size", "n_embd", "d_model"),
    ("num_attention_heads", "n_head"),
    ("num_key_value_heads", "num_kv_heads", "num_attention_groups"),
    ("max_position_embeddings", "n_positions", "max_position_embedding", "max_seq_len"),
    ("intermediate_size", "n_inner"),
    ("sliding_window", "sliding_window_size"),
    ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"),
    (
        "num_experts_per_tok",
        "experts_per_token",
        "num_experts_per_token",
        "top_k_experts",
        "moe_k",
        "moe_topk",
        "moe_top_k",
    ),
    ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"),
    ("moe_intermediate_size", "expert_intermediate_size"),
    ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"),
)
"""Names of one thing in different families; a change to one goes to the name that a file uses."""

_PER_LAYER = (
    "layer_types",
    "hybrid_layer_pattern",
    "moe_layer_freq",
    "attn_type_list",
    "mlp_layer_types",
    "num_attention_heads_per_layer",
    "indexer_types",
    "block_configs",
    "layers_block_type",
    "hybrid_override_pattern",
    "moe_topk",
    "num_shared_expert",
    "moe_intermediate_size",
    "activation_sparsity_pattern",
    "no_rope_layers",
    "compress_ratios",
    "sparse_attention_freq",
    "intermediate_size",
)
_LAYER_NUMBERS = ("mlp_only_layers", "moe_layers", "moe_layers_enum")


def apply_replacements(config: Mapping[str, Any], record: Record) -> Mapping[str, Any]:
    """Return the config with the fields under ``_replace`` put where they belong."""
    fields = config.get("_replace")
    if fields is None:
        return config
    if not isinstance(fields, Mapping):
        raise ConfigError("_replace must be a mapping of field names to values", given=fields)
    merged = {name: value for name, value in config.items() if name != "_replace"}
    wrapper = wrapper_of(config)
    inner = merged
    if wrapper is not None and isinstance(merged.get(wrapper.key), Mapping):
        inner = merged[wrapper.key] = dict(merged[wrapper.key])
    for name, value in fields.items():
        _put(inner if name not in _whole_file(merged, inner) else merged, name, value, record)
    text = ", ".join(f"{name}={_short(value)}" for name, value in fields.items())
    merged["_adapted"] = f"{merged['_adapted']}, {text}" if merged.get("_adapted") else text
    record.replaced = frozenset(fields)
    if "sliding_window" in fields and fields["sliding_window"] is None:
        record.assume("no_window")
    record.assume("variant", changes=text)
    return merged


def _whole_file(merged: Mapping[str, Any], inner: Mapping[str, Any]) -> tuple[str, ...]:
    """Fields that are changed in the wrapper, because its value is the one that counts."""
    if merged is inner:
        return ()
    return tuple(n for n in ("tie_word_embeddings", "dtype", "torch_dtype", "quantization_config")
                 if n in merged)  # fmt: skip


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _put(values: dict[str, Any], name: str, value: Any, record: Record) -> None:
    group = next((names for names in SPELLINGS if name in names), (name,))
    stated = [n for n in group if n in values]
    target = name if name in values or not stated else stated[0]
    if target == "num_hidden_layers" or name == "num_hidden_layers":
        _fit_layers(values, values.get(target), value, record)
    for other in stated:
        if other != target:
            values[other] = value
    values[target] = value


def _fit_layers(values: dict[str, Any], old: Any, new: Any, record: Record) -> None:
    """Fit lists with an entry per layer to a new number of layers."""
    if old is None:  # some files state the layers only by a list of them
        old = next(
            (len(values[n]) for n in _PER_LAYER if isinstance(values.get(n), (list, str))), 0
        )
    whole = isinstance(old, int) and isinstance(new, int) and not isinstance(new, bool)
    if not whole or not 1 <= new <= MAX_LAYERS:
        return  # the reader refuses it with a message of its own
    for name in _PER_LAYER:
        items = values.get(name)
        if isinstance(items, (list, tuple, str)) and len(items) in (old, old + 1):
            # an entry beyond the layers belongs to an MTP block
            fitted = [*continue_pattern(list(items[:old]), new), *items[old:]]
            values[name] = "".join(fitted) if isinstance(items, str) else fitted
            record.assume("fitted", name=name, layers=new)
    for name in _LAYER_NUMBERS:
        items = values.get(name)
        if isinstance(items, (list, tuple)) and items:
            flags = continue_pattern([index in items for index in range(old)], new)
            values[name] = [index for index, flag in enumerate(flags) if flag]
            record.assume("fitted", name=name, layers=new)
    if isinstance(values.get("linear_attn_config"), Mapping):
        values["linear_attn_config"] = _fit_linear(values["linear_attn_config"], old, new, record)
    if isinstance(values.get("sparse_attention_config"), Mapping):
        part = dict(values["sparse_attention_config"])
        _fit_layers(part, old, new, record)
        values["sparse_attention_config"] = part


def _fit_linear(linear: Mapping[str, Any], old: int, new: int, record: Record) -> dict[str, Any]:
    """Fit the 1-based layer lists of Kimi-Linear."""
    full, kda = linear.get("full_attn_layers"), linear.get("kda_layers")
    if not isinstance(full, (list, tuple)) or not isinstance(kda, (list, tuple)):
        return dict(linear)
    kinds = continue_pattern([i in full for i in range(1, old + 1)], new)
    record.assume("fitted", name="linear_attn_config", layers=new)
    return {
        **linear,
        "full_attn_layers": [i for i, is_full in enumerate(kinds, 1) if is_full],
        "kda_layers": [i for i, is_full in enumerate(kinds, 1) if not is_full],
    }


def continue_pattern(items: list[T], length: int) -> list[T]:
    """Cut a per-layer list, or continue it with the shortest period that explains its tail.

    Examples
    --------
    >>> continue_pattern([0, 1, 1, 0, 1, 1], 8), continue_pattern([0, 1, 1, 1], 2)
    ([0, 1, 1, 0, 1, 1, 0, 1], [0, 1])
    """
    if length <= len(items):
        return items[:length]
    size = len(items)
    if not size:
        raise ConfigError("a per-layer list is empty")
    starts = ((period, _period_start(items, period)) for period in range(1, size + 1))
    # what is not repeated and one period: the shortest description, of as much as possible
    period, _ = min(starts, key=lambda pair: (sum(pair), pair[1]))
    tail = items[size - period :]
    repeats = -(-(length - size) // period)
    return (items + tail * repeats)[:length]


def _period_start(items: Sequence[Any], period: int) -> int:
    """First index from which the list repeats with this period."""
    index = len(items) - period
    while index > 0 and items[index - 1] == items[index - 1 + period]:
        index -= 1
    return index
