"""The ledger triangle: where decode time falls, and how that moves with context or concurrency."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._captions import (
    describe_trails,
    triangle_finding,
    triangle_foot,
    triangle_subtitles,
)
from ledgerkit.charts._page import foot, header, meta, resolve_language
from ledgerkit.charts._trails import COLUMNS, read_trails
from ledgerkit.charts._triangle_views import draw_empty, draw_whole, draw_zoomed
from ledgerkit.charts._two_ledgers import draw_two_ledgers
from ledgerkit.charts.canvas import Canvas
from ledgerkit.errors import FigureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from ledgerkit.charts._chart import LedgerChart
    from ledgerkit.charts._trails import Trails
    from ledgerkit.charts.theme import Theme

__all__ = ["ledger_triangle"]

FORMS: Final = ("auto", "whole", "zoom", "two_ledgers")
ZOOM_BELOW: Final = 0.25
TWO_LEDGERS_BELOW: Final = 0.05


def ledger_triangle(
    table: pl.DataFrame,
    *,
    language: str | None = None,
    theme: str | Theme | None = None,
    preset: str | None = None,
    trail: str | None = None,
    form: str = "auto",
    focus: str | None = None,
    arrows: Sequence[Sequence[str]] = (),
) -> LedgerChart:
    """Draw decode time on the ledger triangle.

    A deployment is a point; its trail runs thin to thick as context or concurrency grows. Where
    scheduling stays under 25% of every point, the lower slice is enlarged and the whole triangle
    stands beside it; where it stays under 5%, two bars replace the triangle.

    Parameters
    ----------
    table : polars.DataFrame
        ``Comparison.table``: one row per deployment and trail value.
    language : {"zh", "en"}, optional
        Default: that of :func:`ledgerkit.set_language`.
    theme : {"article", "slide", "dark"}, optional
        Colours.
    preset : {"article", "phone"}, optional
        700 px, or 420 px for reading on a phone.
    trail : {"prompt_tokens", "concurrency", "output_tokens"}, optional
        Column that the trails follow; by default the one that varies.
    form : {"auto", "whole", "zoom", "two_ledgers"}
        Overrides the choice described above.
    focus : str, optional
        Label of the deployment in full colour; the others fade.
    arrows : sequence of (str, str)
        Labels that an arrow leads from and to: what a technique does to a deployment.

    Returns
    -------
    LedgerChart

    Raises
    ------
    FigureError
        If columns are missing, or an option is unknown.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> work = lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=8)
    >>> points = [{"model": "llama-3.1-8b", "hardware": "h100-sxm-80gb", "workload": work}]
    >>> trail = lk.compare(points, trail=("prompt_tokens", [1024, 8192, 65536]))
    >>> chart = ledger_triangle(trail.table, language="en")
    >>> chart.to_dict()["usermeta"]["ledgerkit"]["title"]
    'Decode time: which ledger does it fall on?'
    """
    language = resolve_language(language)
    look = themes.resolve_theme(theme)
    size = themes.resolve_preset(preset, ("article", "phone"))
    check_form(form)
    pairs = _pairs(arrows)
    trails = replace(read_trails(table, trail, language), arrows=pairs)
    series = themes.assign_series([(one.label, one.model) for one in trails.trails], look)
    chosen = choose_form(trails) if form == "auto" else form
    canvas = Canvas(look, size.width)
    title = text.get(f"triangle.title.{size.name}", language)
    subtitles = triangle_subtitles(trails, language)
    if size.name == "phone" and chosen == "whole":
        subtitles.append(text.get("triangle.aid.phone", language))
    y = header(canvas, title, subtitles) - (14 if size.name == "phone" else 0)
    if not trails.trails:
        y = draw_empty(canvas, y, size, language)
    elif chosen == "two_ledgers":
        y = draw_two_ledgers(canvas, y, trails, series, language)
    elif chosen == "zoom":
        y = draw_zoomed(canvas, y, size, trails, series, language, focus)
    else:
        y = draw_whole(canvas, y, size, trails, series, language, focus)
    height = foot(canvas, y, triangle_foot(trails, chosen, language))
    facts = {"title": title, "operating_point": " ".join(subtitles)}
    options = {
        "language": language,
        "theme": look.name,
        "preset": size.name,
        "trail": trails.axis,
        "form": form,
        "focus": focus,
        **({"arrows": [list(pair) for pair in pairs]} if pairs else {}),
    }
    return canvas.chart(
        height,
        description=describe_trails(trails, language, **facts),
        meta=meta(
            "ledger_triangle",
            {"table": (table, COLUMNS)},
            options,
            **facts,
            finding=triangle_finding(trails, language),
        ),
    )


def _pairs(arrows: Sequence[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    pairs = []
    for arrow in arrows:
        if isinstance(arrow, str) or len(arrow) != 2:
            raise FigureError("an arrow is two labels", given=arrow, allowed="(from, to)")
        pairs.append((arrow[0], arrow[1]))
    return tuple(pairs)


def check_form(form: str) -> str:
    """Return a form of the triangle if there is such a one.

    Parameters
    ----------
    form : str
        One of ``FORMS``.

    Returns
    -------
    str

    Raises
    ------
    FigureError
        For any other.

    Examples
    --------
    >>> check_form("zoom")
    'zoom'
    """
    if form not in FORMS:
        raise FigureError("unknown form of the triangle", given=form, allowed=", ".join(FORMS))
    return form


def choose_form(trails: Trails) -> str:
    """Choose how the triangle shows its points.

    Parameters
    ----------
    trails : Trails
        What is drawn.

    Returns
    -------
    {"whole", "zoom", "two_ledgers"}
    """
    largest = max((stop.shares[2] for stop in trails.stops), default=1.0)
    if largest < TWO_LEDGERS_BELOW:
        return "two_ledgers"
    return "zoom" if largest < ZOOM_BELOW else "whole"
