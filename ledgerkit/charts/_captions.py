"""The words around the triangle, made from its data: subtitle, foot, finding, alternative text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit import text
from ledgerkit.charts._trails import coinciding
from ledgerkit.spec.axes import LEDGERS
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.charts._trails import Trail, Trails
    from ledgerkit.text import Language

__all__ = ["describe_trails", "triangle_finding", "triangle_foot", "triangle_subtitles"]


def _only(values: Sequence[float]) -> float | None:
    """The common value, None where they differ."""
    return values[0] if values and len(set(values)) == 1 else None


def triangle_subtitles(trails: Trails, language: Language) -> list[str]:
    """Say the operating point: workload, range of the trail, and what the large mark is.

    Parameters
    ----------
    trails : Trails
        What is drawn.
    language : {"zh", "en"}
        Language.

    Returns
    -------
    list of str
        Empty when nothing is drawn.
    """
    if not trails.trails:
        return []
    by_context = trails.axis == "prompt_tokens"
    fixed = _only([t.concurrency if by_context else t.prompt_tokens for t in trails.trails])
    where = f"triangle.fixed.{'concurrency' if by_context else 'prompt'}"
    if fixed is None:
        workload = text.get(f"{where}.mixed", language)
    else:
        count = numbers.count(fixed) if by_context else numbers.context(fixed)
        workload = text.get(where, language, value=count)
    mark = _only([trail.mark.value for trail in trails.trails])
    first, last = trails.span()
    axis = text.get(f"triangle.axis.{trails.axis}", language)
    if first == last:
        return [
            text.get(
                "triangle.subtitle.point",
                language,
                workload=workload,
                axis=axis,
                position=trails.position(first),
            )
        ]
    key = "triangle.subtitle.same" if mark is not None else "triangle.subtitle.own"
    return [
        text.get(
            key,
            language,
            workload=workload,
            axis=axis,
            first=trails.position(first),
            last=trails.position(last),
            mark=trails.position(mark or 0),
        )
    ]


def triangle_foot(trails: Trails, form: str, language: Language) -> list[str]:
    """Notes under the triangle: deployments, basis, what does not fit, what was left out.

    Parameters
    ----------
    trails : Trails
        What is drawn.
    form : str
        How it is drawn.
    language : {"zh", "en"}
        Language.

    Returns
    -------
    list of str
        Paragraphs.
    """
    lines = []
    same = _only([trail.concurrency for trail in trails.trails]) is not None
    for trail in trails.trails:
        key = "foot.deployment" if same or trails.axis == "concurrency" else "foot.deployment.own"
        lines.append(
            text.get(
                key,
                language,
                label=trail.label,
                deployment=trail.deployment,
                concurrency=numbers.count(trail.concurrency),
            )
        )
    if trails.trails:
        output = _only([trail.output_tokens for trail in trails.trails])
        key = "foot.decode_point" if output is None else "foot.decode_point.output"
        lines.append(text.get(key, language, output=numbers.count(output or 0)))
    if form == "two_ledgers":
        lines.append(text.get("foot.two_ledgers", language))
    lines += [
        text.get("foot.coincide", language, under=under, over=over)
        for under, over in coinciding(trails.trails).items()
    ]
    if any(not stop.fits for stop in trails.stops):
        lines.append(text.get("foot.not_fitting", language))
    lines += left_out(trails.dropped, language)
    if trails.empty:
        labels = text.get("list.separator", language).join(trails.empty)
        lines.append(text.get("foot.no_time", language, labels=labels))
    return lines


def left_out(dropped: int, language: Language) -> list[str]:
    """Say how many rows were not drawn.

    Parameters
    ----------
    dropped : int
        Rows with a value that is missing or not finite.
    language : {"zh", "en"}
        Language.

    Returns
    -------
    list of str
        Empty when none were.
    """
    return [text.get("foot.dropped", language, count=numbers.count(dropped))] if dropped else []


def triangle_finding(trails: Trails, language: Language) -> str:
    """One sentence: whose Attention / KV share grows most along the trail, else what is largest.

    Parameters
    ----------
    trails : Trails
        What is drawn.
    language : {"zh", "en"}
        Language.

    Returns
    -------
    str
        Empty when nothing is drawn.
    """
    if not trails.trails:
        return ""

    def growth(trail: Trail) -> float:
        return trail.stops[-1].shares[0] - trail.stops[0].shares[0]

    mover = max(trails.trails, key=growth)
    if growth(mover) >= 0.05:
        first, last = mover.stops[0], mover.stops[-1]
        return text.get(
            "finding.moves" if len(trails.trails) > 1 else "finding.moves.one",
            language,
            label=mover.label,
            axis=text.get(f"triangle.axis.{trails.axis}", language),
            first=trails.position(first.value),
            last=trails.position(last.value),
            before=numbers.percent(first.shares[0]),
            after=numbers.percent(last.shares[0]),
        )
    first_trail = trails.trails[0]
    largest = max(range(3), key=lambda index: first_trail.mark.shares[index])
    return text.get(
        "finding.largest",
        language,
        label=first_trail.label,
        ledger=text.get(f"ledger.{LEDGERS[largest]}", language),
        share=numbers.percent(first_trail.mark.shares[largest]),
    )


def describe_trails(trails: Trails, language: Language, *, title: str, operating_point: str) -> str:
    """Alternative text: what a reader who does not see the figure needs.

    Parameters
    ----------
    trails : Trails
        What is drawn.
    language : {"zh", "en"}
        Language.
    title, operating_point : str
        As set in the figure.

    Returns
    -------
    str
    """
    parts = []
    for trail in trails.trails:
        shares = dict(zip(("a", "f", "s"), numbers.share_texts(trail.mark.shares), strict=True))
        parts.append(
            text.get(
                "alt.shares",
                language,
                label=trail.label,
                total=numbers.duration(trail.mark.seconds),
                **shares,
            )
        )
    return text.get(
        "alt.figure",
        language,
        title=title,
        operating_point=operating_point,
        items=text.get("alt.separator", language).join(parts)
        or text.get("triangle.choose", language),
        finding=triangle_finding(trails, language),
    ).strip()
