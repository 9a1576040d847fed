"""The article's misreadings, checked with this model's own numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from ledgerkit._ledger import ledger
from ledgerkit._readings.point import ReadingPoint
from ledgerkit._readings.structures import sees_part
from ledgerkit._techniques import transfer
from ledgerkit.catalog.hardware import load_hardware
from ledgerkit.errors import LedgerError
from ledgerkit.spec.attention import NoAttention
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.feed_forward import MoeFfn
from ledgerkit.spec.model import Model

Verdict = Literal["refuted", "holds", "absent", "test"]
"""``refuted``: the numbers say otherwise; ``holds``: here they do not, at the stated point;
``absent``: the model gives no cause for the belief; ``test``: not computable, a test decides."""

FOUR_BIT = "q4_k"
"""What weights are re-typed to where the checkpoint does not fit."""
LOCAL_DEVICES = ("rtx-4090-24gb", "dgx-spark-gb10-128gb", "apple-m3-ultra")
LONG, SHORT = 32_768, 1024
SLOWER, WAIT_S, FULL = 1.2, 10.0, 0.1
"""Long context is not cheap if a step is this much slower than at 1K, the first token takes this
long, or one sequence fills this share of what the engine may use."""
CONCURRENCIES = (1, 8, 64, 256)
NEAR = 1.1


@dataclass(frozen=True)
class Misreading:
    """One belief, what became of it, and the numbers."""

    id: str
    """Key of ``reading.misreading.*``."""
    verdict: Verdict
    numbers: dict[str, Any] = field(default_factory=dict)


def misreadings(point: ReadingPoint) -> tuple[Misreading, ...]:
    """Check the five beliefs in the order of the article."""
    return (
        _active_memory(point), _long_context(point), _local(point), _faster(point),
        _window_recall(point.model),
    )  # fmt: skip


def active_bytes(model: Model) -> float:
    """Stored bytes of the weights that one token uses, lookup tables left out."""
    total = 0.0
    for group in model.groups:
        for weight in group.weights:
            share = 1.0
            if weight.routed and isinstance(group.ffn, MoeFfn):
                share = group.ffn.num_experts_per_tok / group.ffn.num_experts
            total += group.count * weight.bytes * share
    return total + sum(
        w.bytes for w in model.globals if w.use != "lookup" or model.tie_word_embeddings
    )


def _active_memory(point: ReadingPoint) -> Misreading:
    model = point.model
    numbers = {
        "active": model.active_parameter_count, "total": model.parameter_count,
        "active_bytes": active_bytes(model), "weight_bytes": model.weight_bytes,
        "ratio": model.weight_bytes / active_bytes(model),
    }  # fmt: skip
    return Misreading("active_memory", "refuted" if numbers["ratio"] > NEAR else "absent", numbers)


def _long_context(point: ReadingPoint) -> Misreading:
    model = point.model
    longest = model.max_position_embeddings - point.workload.output_tokens
    if longest < LONG:
        return Misreading("long_context", "absent", {"longest": model.max_position_embeddings})
    short, long = (
        point.books(prompt_tokens=tokens, concurrency=1, cached_tokens=0)
        for tokens in (SHORT, longest)
    )
    one = model.cache_bytes(longest, point.deployment.kv_dtype)
    devices = point.deployment.devices
    numbers: dict[str, Any] = {
        "longest": longest, "short": SHORT, "short_tpot_s": short.tpot_s,
        "tpot_s": long.tpot_s, "times": long.tpot_s / short.tpot_s, "ttft_s": long.ttft_s,
        "cache_bytes": one, "fits": long.fits, "max_concurrency": long.max_concurrency,
        "share": one / (long.capacity_bytes * devices),
    }  # fmt: skip
    dear = (
        numbers["times"] > SLOWER or long.ttft_s > WAIT_S or numbers["share"] > FULL
        or long.fits != "yes"
    )  # fmt: skip
    return Misreading("long_context", "refuted" if dear else "holds", numbers)


def _local(point: ReadingPoint) -> Misreading:
    model, rows = point.model, []
    asked = Workload(
        prompt_tokens=point.workload.prompt_tokens, output_tokens=point.workload.output_tokens
    )
    for name in LOCAL_DEVICES:
        row = {"device": name, **_at_home(model, name, asked, None)}
        if row["fits"] != "yes":
            row["four_bit"] = _at_home(model, name, asked, FOUR_BIT)
        rows.append(row)
    somewhere_not = any(row["fits"] != "yes" for row in rows)
    return Misreading(
        "runs_locally", "refuted" if somewhere_not else "holds",
        {"devices": rows, "weight_bytes": model.weight_bytes,
         "prompt_tokens": asked.prompt_tokens},
    )  # fmt: skip


def _at_home(
    model: Model, name: str, asked: Workload, weights: str | None
) -> dict[str, Any]:  # fmt: skip
    """Whether one machine holds one sequence, and how fast; weights as stored or re-typed."""
    device = load_hardware(name)
    found: dict[str, Any] = {"memory_bytes": device.memory_bytes}
    try:
        books = ledger(model, device, Deployment(engine="llama.cpp", weights=weights), asked)
    except LedgerError:
        return found | {"fits": "no", "need_bytes": model.weight_bytes}
    found |= {"fits": books.fits, "need_bytes": books.resident_bytes_device}
    return found | {"ttft_s": books.ttft_s, "tpot_s": books.tpot_s}


def _faster(point: ReadingPoint) -> Misreading:
    if not any(isinstance(group.ffn, MoeFfn) for group in point.model.groups):
        return Misreading("moe_faster", "absent")
    rows = list(_against_dense(point))
    if not rows:
        return Misreading("moe_faster", "test")
    slower = any(row["equal_active"] > 1.0 for row in rows)
    return Misreading("moe_faster", "refuted" if slower else "holds", {"rows": rows})


def _against_dense(point: ReadingPoint) -> Iterator[dict[str, float]]:
    """Seconds of a token over those of a dense model, for several concurrencies."""
    for concurrency in CONCURRENCIES:
        workload = Workload(
            **(point.workload.model_dump() | {"concurrency": concurrency, "cached_tokens": 0})
        )
        row: dict[str, float] = {"concurrency": concurrency}
        try:
            for against in ("equal_active", "equal_total"):
                books = transfer(
                    "moe", model=point.model, hardware=point.hardware,
                    deployment=point.deployment, workload=workload, action="remove",
                    against=against,
                )  # fmt: skip
                moe, dense = books.before.net["tpot_s"], books.after.net["tpot_s"]
                row |= {"tpot_s": moe, against: moe / dense}
        except LedgerError:
            return
        yield row


def _window_recall(model: Model) -> Misreading:
    local = [g for g in model.groups if sees_part(g.attention, model)]
    if not local:
        return Misreading("window_recall", "absent")
    layers = sum(group.count for group in local)
    mixers = [g for g in model.groups if not isinstance(g.attention, NoAttention)]
    full = sum(g.count for g in mixers if not sees_part(g.attention, model))
    limits = [
        limit
        for g in local
        if (limit := g.attention.limit or getattr(g.attention, "window", None)) is not None
    ]
    window = max(limits, default=None)
    longest = model.max_position_embeddings
    depths = sorted(
        {int(depth) for depth in ((window or 1024) // 2, 2 * (window or 1024),
                                  8 * (window or 1024), longest // 2, 0.9 * longest)
         if 0 < depth < longest}
    )  # fmt: skip
    return Misreading(
        "window_recall", "test",
        {"layers": layers, "all_layers": sum(g.count for g in mixers), "window": window,
         "full_layers": full, "depths": depths},
    )  # fmt: skip
