"""Which rows are judged: rules on inputs and provenance, applied before anything is predicted.

R0 the same measurement listed again; R1 an aggregated row whose tensor-parallel size no engine
has: totals of a disaggregated run; R2 a source with fewer than ten rows: a harness of its own;
R3 gpt-oss at 512 clients under vLLM: the server ran far fewer sequences than stated; R4 runs with
speculation that do not say so; R5 two settings under one image and date; R6 (first token only) a
run whose mean holds first-use compilation; R7 disaggregated without worker counts.

R3 to R6 were found by looking at measurements (two branches at equal inputs, impossible first
tokens), and are applied by date, image and layout.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable

from ledgerkit._accuracy.rows import Row

__all__ = ["SAME_TPOT", "distinct", "exclude"]

SAME_TPOT, SAME_TTFT = 0.016, 0.05
"""Relative distance up to which two listings are one measurement."""
FEW_ROWS = 10
TENSOR_PARALLEL = (1, 2, 4, 8)
_SPECULATING = ("2026-01-14", "2026-02-05", "2026-02-06")
_COMPILING = "2025-11-10"


def _near(a: float, b: float, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * max(a, b)


def distinct(rows: Iterable[Row], identity: Callable[[Row], Hashable]) -> list[Row]:
    """Keep one row of each measurement; ``identity`` is equal for names of one architecture."""
    buckets: dict[tuple[Hashable, ...], list[Row]] = defaultdict(list)
    kept = []
    for row in rows:
        devices = row.layout_key if row.disaggregated else (row.layout.devices,)
        key = (
            identity(row), row.system, row.engine, row.precision, row.prompt_tokens,
            row.output_tokens, row.concurrency, row.disaggregated, devices,
        )  # fmt: skip
        for other in buckets[key]:
            if _near(row.tpot_s, other.tpot_s, SAME_TPOT) and (
                _near(row.ttft_s, other.ttft_s, SAME_TTFT) or row.layout_key == other.layout_key
            ):
                other.names |= row.names
                other.duplicates += 1
                break
        else:
            buckets[key].append(row)
            kept.append(row)
    return kept


def exclude(kept: list[Row], everything: list[Row], *, few_rows: int = FEW_ROWS) -> None:
    """Write into each row the rule that keeps it from being judged."""
    sources = Counter(row.origin for row in everything)
    for row in kept:
        if row.curated:
            continue
        row.ttft_judged = row.measured != _COMPILING
        row.judged = _rule(row, sources[row.origin] < few_rows)


def _named(row: Row, *parts: str) -> bool:
    return any(part in name.lower() for name in row.names for part in parts)


def _rule(row: Row, few: bool) -> str:  # noqa: FBT001
    if row.disaggregated:
        stated = row.prefill_workers and row.decode_workers and row.prefill_layout
        return ("R2" if few else "") if stated else "R7"
    if row.layout.tp not in TENSOR_PARALLEL:
        return "R1"
    if few:
        return "R2"
    deepseek = _named(row, "deepseek-r1", "deepseek-v3")
    if _named(row, "gpt-oss") and row.concurrency == 512 and row.engine == "vllm":
        return "R3"
    if deepseek and row.engine == "trtllm" and row.measured in _SPECULATING:
        return "R4"
    if _named(row, "qwen3.5-397b") and (row.precision, row.system) == ("fp8", "b200_sxm"):
        return "R4" if (row.layout.tp, row.layout.ep) == (4, 1) else ""
    sglang_fp8 = (row.engine, row.precision, row.system) == ("sglang", "fp8", "b200_sxm")
    two_settings = row.layout.tp == 8 and row.measured == "2026-03-25"
    if deepseek and sglang_fp8 and two_settings and not _named(row, "deepseek-v3"):
        return "R5"
    return ""
