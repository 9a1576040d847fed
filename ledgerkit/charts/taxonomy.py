"""The taxonomy page: every technique on three ledgers, with signs that transfers compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._page import foot, header, meta, resolve_language
from ledgerkit.charts._trails import read_rows
from ledgerkit.charts.canvas import MARK, Canvas
from ledgerkit.charts.metrics import Box, text_width
from ledgerkit.spec.axes import LEDGERS

if TYPE_CHECKING:
    import polars as pl

    from ledgerkit.charts._chart import LedgerChart
    from ledgerkit.charts.theme import Theme
    from ledgerkit.text import Language

__all__ = ["taxonomy_page"]

COLUMNS: Final = ("id", "name_zh", "name_en", "ledger", "kind", "saves", "pays", "cost_zh",
                  "cost_en")  # fmt: skip
VERBS: Final = ("compute_less", "read_less", "store_less", "communicate_less", "schedule_better")
_ROW: Final = 19.5
_BAND: Final = 24.0
_FIRST: Final = 236.0
_PITCH: Final = 42.0
_COST: Final = 436.0


def taxonomy_page(
    table: pl.DataFrame,
    *,
    language: str | None = None,
    theme: str | Theme | None = None,
    preset: str | None = None,
) -> LedgerChart:
    """Draw every technique on one page: what it saves, who pays.

    Parameters
    ----------
    table : polars.DataFrame
        ``lk.techniques()``, or some of its rows.
    language : {"zh", "en"}, optional
        Default: that of :func:`ledgerkit.set_language`.
    theme : {"article", "slide", "dark"}, optional
        Colours.
    preset : {"article"}, optional
        700 px.

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
    >>> page = lk.charts.taxonomy_page(lk.techniques(), language="en")
    >>> page.to_dict()["width"]
    700
    """
    language = resolve_language(language)
    look = themes.resolve_theme(theme)
    size = themes.resolve_preset(preset, ("article",))
    rows = read_rows(table, COLUMNS, "the taxonomy page")
    canvas = Canvas(look, size.width)
    title = text.get("taxonomy.title", language)
    y = header(canvas, title, []) - 22
    y = _draw_key(canvas, y, language)
    for ledger in LEDGERS:
        mine = [row for row in rows if row["ledger"] == ledger]
        if mine:
            y = _draw_band(canvas, y, ledger, mine, language)
    outside = sum(1 for row in rows if row["kind"] == "technique" and not row["pays"])
    finding = text.get("taxonomy.finding", language, count=len(rows), outside=outside)
    lines = [text.get(f"taxonomy.foot.{name}", language) for name in ("signs", "ask")]
    height = foot(canvas, y + 10, lines)
    options = {"language": language, "theme": look.name, "preset": size.name}
    return canvas.chart(
        height,
        description=f"{title}. {finding}",
        meta=meta("taxonomy_page", {"table": (table, COLUMNS)}, options, title=title,
                  operating_point="", finding=finding),
    )  # fmt: skip


def _draw_key(canvas: Canvas, y: float, language: Language) -> float:
    look, x = canvas.theme, themes.MARGIN
    for shape, hollow, key in (
        ("circle", False, "saves"), ("circle", True, "pays"), ("square", False, "square"),
    ):  # fmt: skip
        color = look.fill["scheduling"] if shape == "square" else look.ink
        _mark(canvas, (x + 6, y), color, hollow=hollow, shape=shape)
        words = text.get(f"taxonomy.{key}", language)
        canvas.text(x + 18, y, words, color=look.ink)
        x += 18 + text_width(words, themes.SMALL) + 22
    y += 30
    for n, verb in enumerate(VERBS):
        canvas.text(_FIRST + n * _PITCH, y, text.get(f"taxonomy.verb.{verb}", language), bold=True,
                    color=look.ink, align="center")  # fmt: skip
    canvas.text(_COST, y, text.get("taxonomy.cost", language), bold=True, color=look.ink)
    canvas.segment((themes.MARGIN, y + 13), (canvas.width - themes.MARGIN, y + 13), look.ink,
                   width=1.2)  # fmt: skip
    return y + 20


def _draw_band(
    canvas: Canvas, y: float, ledger: str, rows: list[dict[str, Any]], language: Language
) -> float:
    look, right = canvas.theme, canvas.width - themes.MARGIN
    box = Box(themes.MARGIN, y, right, y + _BAND)
    canvas.rectangle(box, fill=look.wash[ledger])
    canvas.rectangle(Box(themes.MARGIN, y, themes.MARGIN + 5, y + _BAND), fill=look.fill[ledger])
    canvas.text(themes.MARGIN + 14, y + _BAND / 2, text.get(f"ledger.{ledger}", language),
                size=themes.LABEL, bold=True, color=look.text[ledger])  # fmt: skip
    canvas.text(right - 8, y + _BAND / 2, text.get(f"ledger.question.{ledger}", language),
                color=look.text[ledger], align="right")  # fmt: skip
    y += _BAND
    for row in rows:
        _draw_row(canvas, y + _ROW / 2, row, language)
        y += _ROW
        canvas.segment((themes.MARGIN + 14, y), (right, y), look.grid)
    return y + 10


def _draw_row(canvas: Canvas, y: float, row: dict[str, Any], language: Language) -> None:
    look = canvas.theme
    base = row["kind"] == "baseline"
    canvas.text(themes.MARGIN + 14, y, row[f"name_{language}"], bold=not base,
                color=look.mute if base else look.ink)  # fmt: skip
    paid = dict(part.split(":") for part in row["pays"])
    for n, verb in enumerate(VERBS):
        at = (_FIRST + n * _PITCH, y)
        name = text.get(f"taxonomy.verb.{verb}", language)
        if verb in row["saves"]:
            _mark(canvas, at, look.fill[row["ledger"]], hollow=False,
                  tip={name: text.get("taxonomy.saves", language)})  # fmt: skip
        elif verb in paid:
            _mark(canvas, at, look.fill[paid[verb]], hollow=True,
                  tip={name: text.get(f"ledger.{paid[verb]}", language)})  # fmt: skip
        else:
            canvas.segment((at[0] - 3.5, y), (at[0] + 3.5, y), look.rule, width=1.0)
    x = _COST
    for ledger in (name for name in LEDGERS if name in paid.values()):
        _mark(canvas, (x + 5, y), look.fill[ledger], hollow=False, shape="square")
        x += 15
    canvas.text(x + (4 if paid else 0), y, row[f"cost_{language}"],
                color=look.mute if base else look.ink)  # fmt: skip


def _mark(
    canvas: Canvas, at: tuple[float, float], color: str, *, hollow: bool, shape: str = "circle",
    tip: dict[str, str] | None = None,
) -> None:  # fmt: skip
    fill = canvas.theme.background if hollow else color
    canvas.symbol(at, shape, 92, fill=fill, stroke=color, width=2.0 if hollow else 1.0, level=MARK,
                  tip=tip)  # fmt: skip
