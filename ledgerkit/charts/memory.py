"""Memory of one device against its capacity, one row per deployment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._captions import left_out
from ledgerkit.charts._memory_row import LAYOUT, colors, draw_case
from ledgerkit.charts._page import foot, header, meta, resolve_language
from ledgerkit.charts._trails import finite, read_rows
from ledgerkit.charts.canvas import Canvas
from ledgerkit.charts.metrics import Box, text_width
from ledgerkit.errors import FigureError
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from ledgerkit.charts._chart import LedgerChart
    from ledgerkit.charts.theme import Theme
    from ledgerkit.text import Language

__all__ = ["Case", "memory_bars", "read_cases"]

COLUMNS: Final = (
    "label",
    "component",
    "bytes_device",
    "capacity_bytes",
    "limit_bytes",
    "max_concurrency",
)
WORDS: Final = ("fits", "deployment_text_zh", "deployment_text_en")
OPTIONAL: Final = ("binds_zh", "binds_en", *WORDS)
COMPONENTS: Final = ("attention_weights", "ffn_weights", "cache", "reserve")


@dataclass(frozen=True)
class Case:
    """What sits on the fullest device of one deployment.

    Parameters
    ----------
    label : str
        Its name.
    parts : mapping
        Component to bytes, in drawing order.
    capacity, limit : float
        Bytes of the device, and the part that the engine may use.
    most : int or None
        Sequences that fit at most.
    binds : str
        What binds first, or the cheapest change, in words; may be empty.
    fits : {"yes", "no", "uncertain"}
        Whether it fits.
    deployment : str
        Machine and precision in words; may be empty.
    """

    label: str
    parts: Mapping[str, float]
    capacity: float
    limit: float
    most: int | None
    binds: str
    fits: str
    deployment: str

    @property
    def used(self) -> float:
        """Bytes taken."""
        return sum(self.parts.values())

    @property
    def over(self) -> float:
        """Bytes beyond the limit; negative where there is room."""
        return self.used - self.limit


def read_cases(
    frame: pl.DataFrame, language: Language, table: pl.DataFrame | None = None
) -> tuple[list[Case], int]:
    """Read a frame of resident bytes.

    Parameters
    ----------
    frame : polars.DataFrame
        One row per label and component.
    table : polars.DataFrame, optional
        ``Comparison.table``: whether it fits, and machine and precision in words.
    language : {"zh", "en"}
        Language of the words.

    Returns
    -------
    cases : list of Case
        In the order of appearance.
    dropped : int
        Rows left out because a number is not finite.

    Raises
    ------
    FigureError
        If columns are missing, or a capacity is not positive.
    """
    kept: dict[str, list[dict[str, Any]]] = {}
    dropped = 0
    for row in read_rows(frame, COLUMNS, "the memory bars"):
        if finite(row["bytes_device"], row["capacity_bytes"], row["limit_bytes"]):
            kept.setdefault(row["label"], []).append(row)
        else:
            dropped += 1
    words: dict[str, dict[str, Any]] = {}
    if table is not None:
        for row in read_rows(table, ("label", "is_operating_point", *WORDS), "the memory bars"):
            if row["is_operating_point"]:
                words[row["label"]] = {name: row[name] for name in WORDS}
    cases = [
        _case(label, [row | words.get(label, {}) for row in rows], language)
        for label, rows in kept.items()
    ]
    return cases, dropped


def _case(label: str, rows: Sequence[Mapping[str, Any]], language: Language) -> Case:
    first = rows[0]
    if first["capacity_bytes"] <= 0:
        raise FigureError(
            "a capacity must be positive", given=first["capacity_bytes"], allowed="bytes above 0"
        )
    sums = dict.fromkeys(COMPONENTS, 0.0)
    for row in rows:
        # what is free follows from the rest, so that the bar cannot contradict itself
        if row["component"] in sums:
            sums[row["component"]] += row["bytes_device"]
        elif row["component"] != "free":
            raise FigureError(
                "unknown memory component",
                given=row["component"],
                allowed=", ".join((*COMPONENTS, "free")),
            )
    most = first["max_concurrency"]
    used = sum(sums.values())
    return Case(
        label=label,
        parts={component: size for component, size in sums.items() if size > 0},
        capacity=first["capacity_bytes"],
        limit=first["limit_bytes"],
        most=int(most) if finite(most) else None,
        binds=first.get(f"binds_{language}") or "",
        fits=first.get("fits") or ("no" if used > first["limit_bytes"] else "yes"),
        deployment=first.get(f"deployment_text_{language}") or "",
    )


def memory_bars(
    frame: pl.DataFrame,
    *,
    table: pl.DataFrame | None = None,
    language: str | None = None,
    theme: str | Theme | None = None,
    preset: str | None = None,
) -> LedgerChart:
    """Draw what sits on the fullest device of each deployment, against its capacity.

    Parameters
    ----------
    frame : polars.DataFrame
        Columns label, component (attention_weights, ffn_weights, cache, reserve, free),
        bytes_device, capacity_bytes, limit_bytes, max_concurrency; optional binds_zh, binds_en,
        fits, deployment_text_zh, deployment_text_en.
    table : polars.DataFrame, optional
        ``Comparison.table``: gives those three for each label.
    language : {"zh", "en"}, optional
        Default: that of :func:`ledgerkit.set_language`.
    theme : {"article", "slide", "dark"}, optional
        Colours.
    preset : {"article", "phone"}, optional
        700 px, or 420 px.

    Returns
    -------
    LedgerChart

    Raises
    ------
    FigureError
        If columns are missing, a component is unknown, or an option is.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame(
    ...     {
    ...         "label": "Gemma",
    ...         "component": ["ffn_weights", "cache"],
    ...         "bytes_device": [48e9, 28e9],
    ...         "capacity_bytes": 84.9e9,
    ...         "limit_bytes": 73e9,
    ...         "max_concurrency": 28,
    ...     }
    ... )
    >>> memory_bars(frame, language="en").to_dict()["usermeta"]["ledgerkit"]["finding"]
    'Gemma: over by 3.00 GB, at most 28 sequences.'
    """
    language = resolve_language(language)
    look = themes.resolve_theme(theme)
    size = themes.resolve_preset(preset, ("article", "phone"))
    cases, dropped = read_cases(frame, language, table)
    canvas = Canvas(look, size.width)
    title = text.get("memory.title", language)
    subtitle = text.get("memory.subtitle", language)
    y = header(canvas, title, [subtitle])
    for index, case in enumerate(cases):
        y = draw_case(canvas, y, case, LAYOUT[size.name], language, first=index == 0)
    if cases:
        y = _key(canvas, y, language)
    else:
        canvas.text(themes.MARGIN, y, text.get("triangle.choose", language), color=look.ink)
        y += 12
    notes = [text.get("foot.memory", language)] if cases else []
    height = foot(canvas, y + 18, [*notes, *left_out(dropped, language)])
    facts = {"title": title, "operating_point": subtitle}
    finding = _finding(cases, language)
    frames: dict[str, tuple[pl.DataFrame, Sequence[str]]] = {
        "frame": (frame, (*COLUMNS, *OPTIONAL))
    }
    if table is not None:
        frames["table"] = (table, ("label", "is_operating_point", *WORDS))
    items = text.get("alt.separator", language).join(
        text.get(
            "alt.memory",
            language,
            label=case.label,
            used=numbers.byte_size(case.used),
            capacity=numbers.byte_size(case.capacity),
        )
        for case in cases
    )
    return canvas.chart(
        height,
        description=text.get("alt.figure", language, items=items, finding=finding, **facts).strip(),
        meta=meta(
            "memory_bars",
            frames,
            {"language": language, "theme": look.name, "preset": size.name},
            **facts,
            finding=finding,
        ),
    )


def _key(canvas: Canvas, y: float, language: Language) -> float:
    x = themes.MARGIN
    for component, color in colors(canvas.theme).items():
        word = text.get(f"memory.{component}", language)
        width = 17 + text_width(word, themes.SMALL)
        if x > themes.MARGIN and x + width > canvas.width - themes.MARGIN:
            x, y = themes.MARGIN, y + 19
        canvas.rectangle(Box(x, y - 5.5, x + 11, y + 5.5), fill=color)
        canvas.text(x + 17, y, word, color=canvas.theme.ink)
        x += width + 20
    return y + 12


def _finding(cases: Sequence[Case], language: Language) -> str:
    found = []
    for case in cases:
        state = (
            text.get("fits.over", language, amount=numbers.byte_size(case.over))
            if case.over > 0
            else text.get(f"fits.{case.fits}", language)
        )
        key = "finding.memory" if case.most is not None else "finding.memory.state"
        found.append(
            text.get(
                key, language, label=case.label, state=state, count=numbers.count(case.most or 0)
            )
        )
    return (" " if language == "en" else "").join(found)
