"""What every figure shares: title, subtitle, foot, and the facts stored in its specification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.charts import theme as themes
from ledgerkit.charts.metrics import wrap
from ledgerkit.errors import FigureError
from ledgerkit.text import check_language

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from ledgerkit.charts.canvas import Canvas
    from ledgerkit.text import Language

__all__ = ["foot", "header", "meta", "resolve_language"]


def resolve_language(language: str | None) -> Language:
    """Return the language of a figure.

    Parameters
    ----------
    language : {"zh", "en"} or None
        None is the default of :func:`ledgerkit.set_language`.

    Returns
    -------
    {"zh", "en"}

    Raises
    ------
    FigureError
        For any other language.

    Examples
    --------
    >>> resolve_language("zh")
    'zh'
    """
    try:
        return check_language(language)
    except ValueError as error:
        raise FigureError("unknown language", given=language, allowed="zh, en",
                          fix="use language='en'") from error  # fmt: skip


def header(canvas: Canvas, title: str, subtitles: Sequence[str]) -> float:
    """Set the title and the lines under it, wrapped to the figure.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    title : str
        A question or a claim.
    subtitles : sequence of str
        The operating point.

    Returns
    -------
    float
        Where the body may start, px from the top.
    """
    room = canvas.width - 2 * themes.MARGIN
    y = themes.TITLE_Y
    for line in wrap(title, room, themes.TITLE, bold=True):
        canvas.text(themes.MARGIN, y, line, size=themes.TITLE, color=canvas.theme.ink, bold=True)
        y += themes.SUBTITLE_Y - themes.TITLE_Y
    for subtitle in subtitles:
        for line in wrap(subtitle, room, themes.SUBTITLE):
            canvas.text(themes.MARGIN, y, line, size=themes.SUBTITLE)
            y += themes.SUBTITLE_PITCH
    return y + 24


def foot(canvas: Canvas, y: float, lines: Sequence[str]) -> float:
    """Set the notes under a figure, wrapped.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    y : float
        Middle of the first line, px.
    lines : sequence of str
        Paragraphs.

    Returns
    -------
    float
        Height of the figure, px.
    """
    room = canvas.width - 2 * themes.MARGIN
    set_any = False
    for paragraph in lines:
        for line in wrap(paragraph, room, themes.SMALL):
            canvas.text(themes.MARGIN, y, line)
            y += themes.FOOT_PITCH
            set_any = True
    return y - (themes.FOOT_PITCH if set_any else 0) + themes.BOTTOM


def meta(
    kind: str,
    frames: dict[str, tuple[pl.DataFrame, Sequence[str]]],
    options: dict[str, Any],
    **facts: Any,
) -> dict[str, Any]:
    """Facts that travel with a figure, so that it can be described and drawn again.

    Parameters
    ----------
    kind : str
        Name of the chart function.
    frames : dict
        Argument name to frame and the columns that the chart reads.
    options : dict
        Its other arguments.
    **facts : object
        Title, operating point and finding.

    Returns
    -------
    dict
    """
    data = {
        name: {column: frame[column].to_list() for column in columns if column in frame.columns}
        for name, (frame, columns) in frames.items()
    }
    return {"chart": kind, "options": options, "data": data, **facts}
