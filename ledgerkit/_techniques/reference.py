"""Where each technique shows what it does: a reference deployment, and the signs of its entries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from ledgerkit._techniques.double_entry import Transfer
from ledgerkit._techniques.verb import transfer
from ledgerkit.spec.axes import LEDGERS, Ledger, Phase, Resource, Verb
from ledgerkit.spec.deployment import Workload

NEGLIGIBLE = 0.01
"""Changes below this share of the total before are not shown."""
VERBS: tuple[Verb, ...] = (
    "compute_less", "read_less", "store_less", "communicate_less", "schedule_better",
)  # fmt: skip

_LONG = {"prompt_tokens": 32_768, "output_tokens": 512, "concurrency": 8}
_USUAL = {"prompt_tokens": 8_192, "output_tokens": 512, "concurrency": 16}
_MANY = {"prompt_tokens": 4_096, "output_tokens": 512, "concurrency": 256}
_SOME = _MANY | {"concurrency": 32}
"""Few enough that ranks hit different numbers of experts."""
_H100, _H200 = "h100-sxm-80gb", "h200-sxm-141gb"
_TP8: Mapping[str, Any] = {"tp": 8}


@dataclass(frozen=True, slots=True)
class Reference:
    """A deployment on which a technique is booked for the taxonomy."""

    model: str
    hardware: str = _H100
    deployment: Mapping[str, Any] = field(default_factory=dict)
    workload: Mapping[str, Any] = field(default_factory=lambda: _USUAL)
    action: Literal["apply", "remove"] = "remove"
    """``remove``: the model has it, and the transfer is read the other way round."""
    settings: Mapping[str, Any] = field(default_factory=dict)


_LLAMA, _QWEN, _V3 = "llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3"
REFERENCES: Mapping[str, Reference] = {
    "mqa": Reference(_LLAMA, action="apply"),
    "gqa": Reference(_LLAMA),
    "mla": Reference(_V3, _H200, _TP8, _LONG),
    "mla_absorption": Reference(
        _V3, _H200, _TP8, _USUAL | {"prompt_tokens": 32_800, "cached_tokens": 32_768},
        action="apply",
    ),
    "sliding_window": Reference("mistral-7b-v0.1", workload=_USUAL | {"prompt_tokens": 16_384}),
    "dsa": Reference("deepseek-v3.2", _H200, {"tp": 8, "kv_dtype": "fp8_ds_mla"},
                     _LONG | {"prompt_tokens": 131_072}),
    "nsa": Reference(_LLAMA, workload=_LONG | {"prompt_tokens": 65_536}, action="apply"),
    "block_sparse": Reference("minimax-m3", _H200, _TP8, _LONG),
    "hybrid_window": Reference("gemma-4-26b-a4b", workload=_LONG),
    "hybrid_linear": Reference("qwen3-next-80b-a3b-instruct", _H100, {"tp": 2}, _LONG),
    "kv_quantization": Reference(_LLAMA, action="apply", workload=_LONG),
    "kv_sharing": Reference("gemma-3n-e4b-it", workload=_LONG | {"prompt_tokens": 16_384}),
    "gated_ffn": Reference(_LLAMA, settings={"against": "equal_width"}),
    "moe": Reference(_QWEN, settings={"against": "equal_total"}),
    "shared_experts": Reference(_V3, _H200, _TP8),
    "expert_offload": Reference(_QWEN, action="apply"),
    "expert_quantization": Reference(_QWEN, action="apply"),
    "weight_fp8": Reference(_LLAMA, action="apply"),
    "weight_int8": Reference(_LLAMA, action="apply"),
    "weight_int4": Reference(_LLAMA, action="apply"),
    "weight_mxfp4": Reference(_LLAMA, action="apply"),
    "weight_nvfp4": Reference(_LLAMA, "b200-sxm-180gb", action="apply"),
    "weight_gguf": Reference(_LLAMA, action="apply"),
    "continuous_batching": Reference(_LLAMA),
    "paged_attention": Reference(_LLAMA),
    "prefix_cache": Reference(_LLAMA, action="apply"),
    "radix_attention": Reference(_LLAMA, action="apply"),
    "chunked_prefill": Reference(_LLAMA, action="apply"),
    "speculative_decoding": Reference(_LLAMA, action="apply", settings={"draft": "llama-3.2-1b"}),
    "mtp": Reference(_V3, _H200, _TP8, action="apply"),
    "tensor_parallelism": Reference("llama-3.1-70b", action="apply"),
    "pipeline_parallelism": Reference("llama-3.1-70b", action="apply"),
    "expert_parallelism": Reference(_V3, _H200, {"dp_attention": 8}, _SOME, action="apply"),
    "deepep": Reference(_V3, _H200, {"dp_attention": 8, "ep": 8}, _MANY),
    "dp_attention": Reference(_V3, _H200, {"tp": 8, "ep": 8}, _LONG, action="apply"),
    "pd_disaggregation": Reference(_LLAMA, action="apply"),
}  # fmt: skip
"""By technique; the baselines ``mha`` and ``dense_ffn`` have none."""


@lru_cache(maxsize=64)
def reference_transfer(technique: str) -> Transfer:
    """Transfer of a technique on its reference deployment, from without it to with it."""
    ref = REFERENCES[technique]
    found = transfer(
        technique, model=ref.model, hardware=ref.hardware, deployment=dict(ref.deployment),
        workload=Workload(**ref.workload), action=ref.action, **ref.settings,
    )  # fmt: skip
    return found if ref.action == "apply" else found.reversed()


@dataclass(frozen=True, slots=True)
class Sign:
    """What a technique does to one verb: saves or pays, and which ledger does."""

    saves: bool
    ledger: Ledger
    share: float
    """Net change over the total before; negative saves."""


def signs(found: Transfer) -> dict[Verb, Sign]:
    """Net sign of each verb: in decode, or in prefill where decode does not change.

    ``schedule_better`` looks at waiting first, then at steps, then at seconds of the scheduling
    ledger over all seconds.
    """
    nets: dict[Verb, Sign] = {}
    for verb, rows, whole in _candidates(found):
        change = math.fsum(amount for _, amount in rows)
        if verb in nets or not change:
            continue
        share = change / whole if whole else math.copysign(1.0, change)
        if abs(share) < NEGLIGIBLE:
            continue
        books = dict.fromkeys(LEDGERS, 0.0)
        for ledger, amount in rows:
            books[ledger] += amount
        ledger = (max if change > 0 else min)(LEDGERS, key=lambda name: books[name])
        nets[verb] = Sign(change < 0, ledger, share)
    return {verb: nets[verb] for verb in VERBS if verb in nets}


Changes = list[tuple[Ledger, float]]


def _candidates(found: Transfer) -> Iterator[tuple[Verb, Changes, float]]:
    """(verb, changes by ledger, total before), the one to look at first first."""
    table = list(found.table.iter_rows(named=True))

    def of(phase: Phase, resource: Resource, account: str | None = None) -> tuple[Changes, float]:
        rows = [row for row in table if (row["phase"], row["resource"]) == (phase, resource)]
        side = ""
        if not any(row["change"] for row in rows) and all(
            row["before_replica"] is not None for row in rows
        ):
            side = "_replica"  # what other devices pay
        whole = math.fsum(row["before" + side] or 0.0 for row in rows)
        if resource == "time":
            rows = [row for row in rows if row["ledger"] == "scheduling"]
        return (
            [(row["ledger"], row["change" + side] or 0.0) for row in rows
             if account in (None, row["account"])],
            whole,
        )  # fmt: skip

    moving: tuple[tuple[Verb, Resource], ...] = (
        ("compute_less", "compute"), ("read_less", "read"), ("communicate_less", "communicate"),
    )  # fmt: skip
    phases: tuple[Phase, ...] = ("decode", "prefill")
    for verb, resource in moving:
        for phase in phases:
            yield verb, *of(phase, resource)
    yield "store_less", *of("hold", "resident")
    yield "schedule_better", *of("decode", "time", "queue")
    for phase in phases:
        yield "schedule_better", *of(phase, "steps")
        yield "schedule_better", *of(phase, "time")
