"""Verdicts in sentences, zh and en."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ledgerkit.text import check_language, get
from ledgerkit.text.numbers import context as context_text
from ledgerkit.text.numbers import duration, percent

if TYPE_CHECKING:
    from ledgerkit.loadtest._diagnosis import Diagnosis
    from ledgerkit.loadtest._findings import Finding
    from ledgerkit.loadtest._fit import Interval
    from ledgerkit.loadtest._plan import Plan
    from ledgerkit.loadtest._series import SeriesDiagnosis
    from ledgerkit.loadtest._settle import NextCell

__all__ = [
    "cell_text",
    "change_text",
    "describe",
    "describe_plan",
    "describe_series",
    "evidence",
    "finding_text",
    "next_text",
]

_LIST = {"zh": "、", "en": ", "}
_STOP = {"zh": "：", "en": ": "}


def cell_text(context: float, concurrency: float, language: str | None) -> str:
    """Name of a cell as figures write it: ``32K × batch 8``."""
    many = (
        f"{concurrency:.0f}"
        if abs(concurrency - round(concurrency)) < 0.05
        else (f"{concurrency:.1f}")
    )
    return get("loadtest.cell", language, context=context_text(context), concurrency=many)


def _interval(share: Interval) -> dict[str, str]:
    ends = {"value": share.value, "low": share.low, "high": share.high}
    if percent(share.low) == percent(share.high) and share.high > share.low:
        return {name: f"{100 * end:.1f}%" for name, end in ends.items()}
    return {name: percent(end) for name, end in ends.items()}


def _times(value: float) -> str:
    return f"{value:.2f}" if value < 0.95 else f"{value:.1f}" if value < 10 else f"{value:.0f}"


def evidence(found: Diagnosis, language: str | None = None) -> list[str]:
    """Sentences under the verdict: the share, the rule, what anchors say."""
    lines = []
    if found.attention_kv_share is not None:
        where = cell_text(found.context_tokens, found.concurrency, language)
        lines.append(
            get("loadtest.share", language, cell=where, **_interval(found.attention_kv_share))
        )
    lines.append(_rule(found, language))
    if found.fit is not None and found.step_share and found.sequence_share:
        kind = get(f"loadtest.kind.{found.fit.basis.weights_kind}", language)
        lines.append(
            get("loadtest.shares_rest", language, kind=kind,
                step=percent(found.step_share.value),
                sequence=percent(found.sequence_share.value))
        )  # fmt: skip
    lines += _anchors(found, language)
    return lines


def _rule(found: Diagnosis, language: str | None) -> str:
    rule = found.judgement.rule
    fields: dict[str, str] = {}
    if rule == "kv_straddles":
        fields["edges"] = _LIST[check_language(language)].join(
            percent(edge) for edge in found.judgement.thresholds
        )
    elif rule.startswith("misfit") and found.fit is not None:
        misfit = found.fit.lack_of_fit()
        fields = {
            "cell": misfit.worst_cell.replace(" x ", "×"),
            "residual": percent(misfit.worst_residual, signed=True),
        }
    elif rule == "noisy" and found.fit is not None:
        fields = {"sigma": percent(found.fit.sigma)}
    elif rule == "engine_gap" and found.gap is not None:
        fields = _interval(found.gap)
    return get(f"loadtest.rule.{rule}", language, **fields)


def _anchors(found: Diagnosis, language: str | None) -> list[str]:
    lines = []
    anchors, suspect = found.anchors, found.judgement.suspect
    if found.judgement.rule == "neither_helps" and anchors is None:
        lines.append(get("loadtest.suspect.sequences", language))
    if found.verdict == "weights":
        if anchors is None:
            lines.append(get("loadtest.suspect.unknown", language))
        elif suspect == "compute" and anchors.sequence is not None:
            value = _times(anchors.sequence.value)
            lines.append(get("loadtest.suspect.compute", language, value=value))
        elif suspect is not None and anchors.constant is not None:
            value = _times(anchors.constant.value)
            lines.append(get(f"loadtest.suspect.{suspect}", language, value=value))
        elif anchors.constant is not None:
            lines.append(
                get("loadtest.suspect.open", language, low=_times(anchors.constant.low),
                    high=_times(anchors.constant.high))
            )  # fmt: skip
    if anchors is not None and anchors.cache is not None:
        ratio = anchors.cache
        side = "high" if ratio.low >= 1.5 else "low" if ratio.high < 0.8 else "ok"
        if side != "ok" or ratio.high / max(ratio.low, 1e-9) < 3:
            lines.append(get(f"loadtest.kappa_a.{side}", language, value=_times(ratio.value)))
    return lines


_WIDE_CACHES = ("bf16", "fp16", "fp32")


def change_text(found: Diagnosis, language: str | None = None) -> str:
    """The first thing to change, with its size; empty where nothing follows."""
    share, fit = found.attention_kv_share, found.fit
    if found.verdict in ("attention_kv", "mixed") and share is not None:
        cache = "bf16" if found.deployment is None else found.deployment.kv_dtype
        if cache in _WIDE_CACHES:
            part = 0.75 if cache == "fp32" else 0.5
            return get("loadtest.change.kv_fp8", language,
                       change=percent(-part * share.value, signed=True))  # fmt: skip
        return get("loadtest.change.kv_less", language,
                   change=percent(-0.1 * share.value, signed=True))  # fmt: skip
    if found.verdict == "weights" and fit is not None:
        here = float(
            fit.predict(np.array([found.context_tokens]), np.array([found.concurrency]))[0]
        )
        many = 2.0 * found.concurrency
        there = float(fit.predict(np.array([found.context_tokens]), np.array([many]))[0])
        return get("loadtest.change.batch", language, many=f"{many:.0f}",
                   change=percent(2.0 * here / there - 1.0, signed=True))  # fmt: skip
    return get("loadtest.change.service", language) if found.verdict == "service" else ""


def next_text(cells: tuple[NextCell, ...], language: str | None = None) -> list[str]:
    """What to measure next, in words; empty when nothing is open."""
    if not cells:
        return []
    names = _LIST[check_language(language)].join(
        get("loadtest.next.cell", language, runs=cell.runs,
            cell=cell_text(cell.prompt_tokens, cell.concurrency, language))
        for cell in cells
    )  # fmt: skip
    lines = [get("loadtest.next", language, cells=names)]
    first = cells[0]
    if first.expected_width is not None:
        key = "loadtest.next.settles" if first.settles else "loadtest.next.narrows"
        lines.append(get(key, language, width=percent(first.expected_width)))
    return lines


_SHARES = ("residual", "drift", "share")
_FACTORS = ("growth", "span", "power")


def finding_text(finding: Finding, language: str | None = None) -> str:
    """One pitfall in words."""
    fields: dict[str, Any] = dict(finding.values)
    for name in _SHARES:
        if name in fields:
            fields[name] = percent(fields[name], signed=name != "share")
    for name in _FACTORS:
        if name in fields:
            fields[name] = _times(fields[name])
    if "tokens" in fields:
        fields["tokens"] = context_text(fields["tokens"])
    shown = finding.cells[:4] + (("…",) if len(finding.cells) > 4 else ())
    fields["cells"] = _LIST[check_language(language)].join(shown)
    text = get(f"loadtest.finding.{finding.key}", language, **fields)
    if finding.severity == "excluded":
        gap = "" if check_language(language) == "zh" else " "
        text += gap + get("loadtest.excluded", language)
    return text


def describe(found: Diagnosis, language: str | None = None) -> str:
    """Everything a diagnosis says, in lines."""
    word = get(
        {"weights": "verdict.weights"}.get(found.verdict, f"verdict.{found.verdict}"), language
    )
    lines = [word, *evidence(found, language), *next_text(found.next_cells, language)]
    if found.findings:
        lines.append(get("loadtest.findings", language))
        lines += [f"- {finding_text(finding, language)}" for finding in found.findings]
    return "\n".join(lines)


def describe_series(found: SeriesDiagnosis, language: str | None = None) -> str:
    """What one series says, in lines."""
    lines = [get(f"loadtest.series.{found.verdict}", language)]
    if found.outliers:
        places = _LIST[check_language(language)].join(
            context_text(place) if found.axis == "context" else f"batch {place:.0f}"
            for place in found.outliers
        )
        rest = get(f"loadtest.series.{found.without_outliers}", language)
        lines.append(get("loadtest.series.outliers", language, places=places, rest=rest))
    if found.sensitivity is not None:
        fields = {"growth": _times(found.growth)}
        if found.axis == "context":
            fields |= _interval(found.sensitivity)
        else:
            share = found.sensitivity
            fields |= {
                "value": f"{share.value:.2f}", "low": f"{share.low:.2f}",
                "high": f"{share.high:.2f}", "factor": f"{2**share.value:.2f}",
            }  # fmt: skip
        lines.append(get(f"loadtest.series.{found.axis}", language, **fields))
    lines += [finding_text(finding, language) for finding in found.findings]
    lines.append(get("loadtest.series.only", language))
    return "\n".join(lines)


def describe_plan(plan: Plan, language: str | None = None) -> str:
    """What will be run, what is left out and why, how long it takes and what it costs."""
    comma = _LIST[check_language(language)]
    lines = [
        get("loadtest.plan.cells", language, count=len(plan.cells), runs=plan.runs,
            bursts=len(plan.order), output=plan.cells[0].output_tokens,
            cells=comma.join(cell.name for cell in plan.cells))
    ]  # fmt: skip
    for reason in ("memory", "length", "seats", "time"):
        names = [cell.name for cell in plan.skipped if cell.reason == reason]
        if names:
            lines.append(get(f"loadtest.plan.{reason}", language, cells=comma.join(names)))
    unsure = [cell.name for cell in plan.cells if cell.fits == "uncertain"]
    if unsure:
        lines.append(get("loadtest.plan.uncertain", language, cells=comma.join(unsure)))
    if plan.duration_s is not None:
        lines.append(get("loadtest.plan.duration", language, time=_long(plan.duration_s, language)))
    if plan.cost_usd is not None:
        lines.append(
            get("loadtest.plan.cost", language, usd=f"{plan.cost_usd:.2f}",
                date=plan.price_date or "–")
        )  # fmt: skip
    return "\n".join(lines)


def _long(seconds: float, language: str | None) -> str:
    if seconds < 120:
        return duration(seconds)
    return get("loadtest.plan.minutes", language, minutes=f"{seconds / 60:.0f}")
