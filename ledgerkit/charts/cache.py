"""Cache of one sequence against context, on logarithmic axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._cache_plot import Axes, draw_axes, draw_curves, draw_ends
from ledgerkit.charts._capacities import draw_capacities
from ledgerkit.charts._captions import left_out
from ledgerkit.charts._page import foot, header, meta, resolve_language
from ledgerkit.charts._trails import finite, read_rows
from ledgerkit.charts.canvas import Canvas
from ledgerkit.charts.metrics import text_width
from ledgerkit.errors import FigureError
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from ledgerkit.charts._chart import LedgerChart
    from ledgerkit.charts.theme import Theme
    from ledgerkit.text import Language

__all__ = ["Curve", "cache_curves", "read_curves"]

COLUMNS: Final = (
    "label",
    "model",
    "context_tokens",
    "cache_bytes",
    "mechanism_zh",
    "mechanism_en",
    "law_zh",
    "law_en",
)
OPTIONAL: Final = ("is_reference", "capacity_bytes", "capacity_text_zh", "capacity_text_en")
COUNTED: Final = ("live", "reserved")
_PLOT_HEIGHT: Final = 374.0


@dataclass(frozen=True)
class Curve:
    """Cache bytes of one model over context.

    Parameters
    ----------
    label, model : str
        Name at the line, and slug.
    points : tuple of (context_tokens, cache_bytes)
        Ascending, all positive.
    mechanism, law : str
        What holds the cache, and how it grows, in words.
    capacity : float or None
        Bytes that one sequence may take.
    capacity_text : str
        What the capacity is, in words; may be empty.
    reference : bool
        A line for comparison, drawn in grey.
    """

    label: str
    model: str
    points: tuple[tuple[float, float], ...]
    mechanism: str
    law: str
    capacity: float | None
    capacity_text: str
    reference: bool

    def crossing(self) -> float | None:
        """Context at which the curve meets its capacity, interpolated on the logarithmic axes.

        Returns
        -------
        float or None
            Tokens; None where it stays below, or is above from the start.
        """
        if self.capacity is None:
            return None
        for (x0, y0), (x1, y1) in zip(self.points, self.points[1:], strict=False):
            if y0 <= self.capacity < y1:
                part = math.log(self.capacity / y0) / math.log(y1 / y0)
                return float(x0 * (x1 / x0) ** part)
        return None

    def same_as(self, other: Curve) -> bool:
        """Whether both curves hold the same bytes everywhere, within 1%."""
        return len(self.points) == len(other.points) and all(
            x0 == x1 and abs(y0 / y1 - 1) < 0.01
            for (x0, y0), (x1, y1) in zip(self.points, other.points, strict=True)
        )


def read_curves(frame: pl.DataFrame, language: Language) -> tuple[list[Curve], int]:
    """Read a frame of cache sizes.

    Parameters
    ----------
    frame : polars.DataFrame
        One row per model and context.
    language : {"zh", "en"}
        Language of mechanism and law.

    Returns
    -------
    curves : list of Curve
        In the order of appearance.
    dropped : int
        Rows left out: not finite, or not positive, which a logarithmic axis cannot show.

    Raises
    ------
    FigureError
        If columns are missing.
    """
    kept: dict[str, list[dict[str, Any]]] = {}
    dropped = 0
    for row in read_rows(frame, COLUMNS, "the cache curves"):
        x, y = row["context_tokens"], row["cache_bytes"]
        if finite(x, y) and x > 0 and y > 0:
            kept.setdefault(row["label"], []).append(row)
        else:
            dropped += 1
    return [_curve(label, rows, language) for label, rows in kept.items()], dropped


def _curve(label: str, rows: list[dict[str, Any]], language: Language) -> Curve:
    rows = sorted(rows, key=lambda row: row["context_tokens"])
    first = rows[0]
    capacity = first.get("capacity_bytes")
    return Curve(
        label=label,
        model=first["model"],
        points=tuple((row["context_tokens"], row["cache_bytes"]) for row in rows),
        mechanism=first[f"mechanism_{language}"] or "",
        law=first[f"law_{language}"] or "",
        capacity=capacity if capacity and finite(capacity) and capacity > 0 else None,
        capacity_text=first.get(f"capacity_text_{language}") or "",
        reference=bool(first.get("is_reference", False)),
    )


def cache_curves(
    frame: pl.DataFrame,
    *,
    language: str | None = None,
    theme: str | Theme | None = None,
    preset: str | None = None,
    counted: str = "live",
) -> LedgerChart:
    """Draw the cache of one sequence against its context.

    Parameters
    ----------
    frame : polars.DataFrame
        Columns label, model, context_tokens, cache_bytes, mechanism_zh, mechanism_en, law_zh,
        law_en; optional is_reference, capacity_bytes (bytes that one sequence may take, null where
        unknown), capacity_text_zh, capacity_text_en.
    language : {"zh", "en"}, optional
        Default: that of :func:`ledgerkit.set_language`.
    theme : {"article", "slide", "dark"}, optional
        Colours.
    preset : {"article", "phone"}, optional
        700 px, or 420 px.
    counted : {"live", "reserved"}
        What the bytes are: those in use, or those that an engine sets aside.

    Returns
    -------
    LedgerChart

    Raises
    ------
    FigureError
        If columns are missing, or an option is unknown.

    Examples
    --------
    >>> import polars as pl
    >>> tokens = [1024, 8192, 131072]
    >>> frame = pl.DataFrame(
    ...     {
    ...         "label": "DeepSeek-V3",
    ...         "model": "deepseek-v3",
    ...         "context_tokens": tokens,
    ...         "cache_bytes": [70272 * n for n in tokens],
    ...         "mechanism_zh": "MLA",
    ...         "mechanism_en": "MLA",
    ...         "law_zh": "70.3 kB/token",
    ...         "law_en": "70.3 kB/token",
    ...         "capacity_bytes": 4.82e9,
    ...     }
    ... )
    >>> cache_curves(frame, language="en").to_dict()["usermeta"]["ledgerkit"]["finding"]
    'DeepSeek-V3 fits up to 67K.'
    """
    language = resolve_language(language)
    look = themes.resolve_theme(theme)
    size = themes.resolve_preset(preset, ("article", "phone"))
    if counted not in COUNTED:
        raise FigureError("unknown kind of bytes", given=counted, allowed=", ".join(COUNTED))
    curves, dropped = read_curves(frame, language)
    named = [(curve.label, curve.model) for curve in curves if not curve.reference]
    series = themes.assign_series(named, look)
    series |= {
        curve.label: themes.Series(curve.label, look.mute, "", (8, 4))
        for curve in curves
        if curve.reference
    }
    canvas = Canvas(look, size.width)
    title = text.get("cache.title", language)
    subtitle = text.get(f"cache.subtitle.{counted}", language)
    y = header(canvas, title, [subtitle]) + 4
    if curves:
        phone = size.name == "phone"
        words = 0.0 if phone else _label_room(curves)
        plot = (62.0 if phone else 84.0, y, size.width - themes.MARGIN - words, y + _PLOT_HEIGHT)
        axes = Axes.around(curves, *plot)
        draw_axes(canvas, axes, language)
        draw_capacities(canvas, axes, curves, series, language)
        draw_curves(canvas, axes, curves, series, language)
        y = draw_ends(canvas, axes, curves, series, language, listed=phone)
    else:
        canvas.text(themes.MARGIN, y, text.get("triangle.choose", language), color=look.ink)
        y += 30
    notes = [text.get("foot.cache", language)] if any(c.capacity for c in curves) else []
    height = foot(canvas, y, [*notes, *left_out(dropped, language)])
    facts = {"title": title, "operating_point": subtitle}
    finding = _finding(curves, language)
    return canvas.chart(
        height,
        description=_describe(curves, finding, language, **facts),
        meta=meta(
            "cache_curves",
            {"frame": (frame, (*COLUMNS, *OPTIONAL))},
            {"language": language, "theme": look.name, "preset": size.name, "counted": counted},
            **facts,
            finding=finding,
        ),
    )


def _label_room(curves: Sequence[Curve]) -> float:
    """Width of the column of names at the right, leaders included."""
    widths = [
        max(
            text_width(curve.label, themes.LABEL, bold=True),
            text_width(curve.mechanism, themes.SMALL),
            text_width(curve.law, themes.SMALL),
        )
        for curve in curves
    ]
    return min(260.0, max(widths)) + 22


def _finding(curves: Sequence[Curve], language: Language) -> str:
    found = [
        text.get("finding.cache", language, label=curve.label, context=numbers.context(crossing))
        for curve in curves
        if (crossing := curve.crossing()) is not None
    ]
    return " ".join(found) if language == "en" else "".join(found)


def _describe(
    curves: Sequence[Curve], finding: str, language: Language, *, title: str, operating_point: str
) -> str:
    items = [
        text.get(
            "alt.cache",
            language,
            label=curve.label,
            mechanism=curve.mechanism,
            context=numbers.context(curve.points[-1][0]),
            amount=numbers.byte_size(curve.points[-1][1]),
        )
        for curve in curves
    ]
    return text.get(
        "alt.figure",
        language,
        title=title,
        operating_point=operating_point,
        items=text.get("alt.separator", language).join(items),
        finding=finding,
    ).strip()
