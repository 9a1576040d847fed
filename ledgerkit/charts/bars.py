"""Ledger bars: time, bytes read and memory of each deployment, each as 100% of its own total."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._captions import left_out
from ledgerkit.charts._key import draw_key, group_name
from ledgerkit.charts._page import foot, header, meta, resolve_language
from ledgerkit.charts._segments import grouped, segments
from ledgerkit.charts._trails import finite, read_rows
from ledgerkit.charts.canvas import GRID, Canvas
from ledgerkit.charts.metrics import Box, text_width, wrap
from ledgerkit.spec.axes import LEDGERS
from ledgerkit.text import numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from ledgerkit.charts._chart import LedgerChart
    from ledgerkit.charts.theme import Theme
    from ledgerkit.spec.axes import Ledger
    from ledgerkit.text import Language

__all__ = ["Bill", "draw_bill", "ledger_bars", "read_bills"]

COLUMNS: Final = (
    "label",
    "phase",
    "resource",
    "ledger",
    "account",
    "amount_device",
    "amount_replica",
)
POINT_COLUMNS: Final = (
    "label",
    "is_operating_point",
    "prompt_tokens",
    "output_tokens",
    "concurrency",
    "deployment_text_zh",
    "deployment_text_en",
)
RESOURCES: Final[Mapping[str, tuple[str, Callable[[float], str]]]] = {
    "time": ("decode", numbers.duration),
    "read": ("decode", numbers.byte_size),
    "resident": ("hold", numbers.byte_size),
}
"""Resource to the phase that it is taken from and how its total is written."""

BAR: Final = 19.0
PITCH: Final = 23.0


@dataclass(frozen=True)
class Bill:
    """What one deployment pays.

    Parameters
    ----------
    label : str
        Its name.
    amounts : mapping
        Resource to ledger to group to amount.
    accounts : mapping
        Ledger and group to the accounts that occur in it.
    """

    label: str
    amounts: Mapping[str, Mapping[Ledger, Mapping[str, float]]]
    accounts: Mapping[tuple[Ledger, str], tuple[str, ...]]

    def by_ledger(self, resource: str) -> list[float]:
        """Amounts of one resource by ledger, in the order of the ledgers."""
        return [sum(self.amounts[resource].get(ledger, {}).values()) for ledger in LEDGERS]


@dataclass(frozen=True)
class Columns:
    """Where the parts of a row stand, px.

    Parameters
    ----------
    name : float
        Right end of the row's name.
    left, right : float
        Ends of the bar.
    shares : tuple of float
        Right ends of the three share columns.
    total : float
        Right end of the total.
    """

    name: float
    left: float
    right: float
    shares: tuple[float, float, float]
    total: float


LAYOUT: Final[Mapping[str, Columns]] = {
    "article": Columns(92.0, 104.0, 492.0, (540.0, 580.0, 618.0), 680.0),
    "panel": Columns(82.0, 94.0, 392.0, (434.0, 470.0, 506.0), 568.0),
    "phone": Columns(68.0, 76.0, 240.0, (274.0, 306.0, 338.0), 400.0),
}


def read_bills(entries: pl.DataFrame) -> tuple[list[Bill], int]:
    """Read entries into bills, one per label, in the order of appearance.

    Parameters
    ----------
    entries : polars.DataFrame
        ``Comparison.entries``, or a frame with its columns.

    Returns
    -------
    bills : list of Bill
        Bytes are summed over the replica, time is the busiest device's.
    dropped : int
        Rows left out because their amount is not finite.

    Raises
    ------
    FigureError
        If columns are missing.
    """
    sums: dict[str, dict[str, list[tuple[Ledger, str, float]]]] = {}
    dropped = 0
    for row in read_rows(entries, COLUMNS, "the ledger bars"):
        phase = RESOURCES.get(row["resource"], ("", None))[0]
        own = sums.setdefault(row["label"], {resource: [] for resource in RESOURCES})
        if row["phase"] != phase:
            continue
        amount = row["amount_device"]
        if row["resource"] != "time" and row["amount_replica"] is not None:
            amount = row["amount_replica"]
        if finite(amount):
            own[row["resource"]].append((row["ledger"], row["account"], amount))
        else:
            dropped += 1
    return [_bill(label, own) for label, own in sums.items()], dropped


def _bill(label: str, own: Mapping[str, list[tuple[Ledger, str, float]]]) -> Bill:
    amounts = {resource: grouped(rows) for resource, rows in own.items()}
    accounts: dict[tuple[Ledger, str], tuple[str, ...]] = {}
    for resource, rows in own.items():
        for ledger, account, amount in rows:
            if amount <= 0:
                continue
            for group in amounts[resource][ledger]:
                named = account in themes.GROUPS[ledger].get(group, ())
                if named and account not in accounts.get((ledger, group), ()):
                    accounts[ledger, group] = (*accounts.get((ledger, group), ()), account)
    return Bill(label, amounts, accounts)


def draw_bill(
    canvas: Canvas,
    y: float,
    bill: Bill,
    columns: Columns,
    language: Language,
    *,
    short: bool = False,
) -> float:
    """Draw the three bars of one deployment.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    y : float
        Middle of the first bar, px.
    bill : Bill
        What to draw.
    columns : Columns
        Where its parts stand.
    language : {"zh", "en"}
        Language.
    short : bool
        Short names of the rows.

    Returns
    -------
    float
        Middle of the line after the last bar, px.
    """
    theme = canvas.theme
    ends = (y - PITCH / 2 - 2, y + PITCH * (len(RESOURCES) - 0.5) + 2)
    for tick in (0.0, 0.5, 1.0):
        x = columns.left + tick * (columns.right - columns.left)
        canvas.segment((x, ends[0]), (x, ends[1]), theme.grid, level=GRID)
    for resource, (_, write) in RESOURCES.items():
        key = f"bars.row.{resource}" if short else f"resource.{resource}"
        canvas.text(columns.name, y, text.get(key, language), align="right")
        for part in segments(bill.amounts[resource], columns.left, columns.right):
            accounts = bill.accounts.get((part.ledger, part.group), ())
            canvas.rectangle(
                Box(part.left, y - BAR / 2, part.right, y + BAR / 2),
                fill=theme.tints[part.ledger].get(part.group, theme.fill[part.ledger]),
                tip={
                    text.get("tip.model", language): bill.label,
                    text.get("tip.resource", language): text.get(f"resource.{resource}", language),
                    text.get("tip.ledger", language): text.get(f"ledger.{part.ledger}", language),
                    text.get("tip.account", language): group_name(
                        part.ledger, part.group, accounts, language
                    ),
                    text.get("tip.amount", language): write(part.amount),
                    text.get("tip.share", language): numbers.percent(part.share),
                },
            )
        sums = bill.by_ledger(resource)
        largest = sums.index(max(sums))
        for index, (ledger, share) in enumerate(
            zip(LEDGERS, numbers.share_texts(sums), strict=True)
        ):
            canvas.text(
                columns.shares[index],
                y,
                share,
                color=theme.text[ledger],
                bold=index == largest and sums[index] > 0,
                align="right",
            )
        total = write(sum(sums)) if sum(sums) > 0 else numbers.NOTHING
        canvas.text(columns.total, y, total, color=theme.ink, align="right")
        y += PITCH
    return y


def draw_bar_heads(canvas: Canvas, y: float, columns: Columns, language: Language) -> None:
    """Head of the bars: the scale and the names of the columns.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    y : float
        Middle of the line, px.
    columns : Columns
        Where the parts stand.
    language : {"zh", "en"}
        Language.
    """
    theme = canvas.theme
    for share, align in ((0.0, "left"), (0.5, "center"), (1.0, "right")):
        x = columns.left + share * (columns.right - columns.left)
        canvas.text(x, y, numbers.percent(share) if share else "0", align=align)
    for ledger, x in zip(LEDGERS, columns.shares, strict=True):
        head = text.get(f"ledger.short.{ledger}", language)
        canvas.text(x, y, head, color=theme.text[ledger], bold=True, align="right")
    head = text.get("bars.total", language)
    canvas.text(columns.total, y, head, color=theme.ink, bold=True, align="right")


def ledger_bars(
    entries: pl.DataFrame,
    *,
    table: pl.DataFrame | None = None,
    language: str | None = None,
    theme: str | Theme | None = None,
    preset: str | None = None,
) -> LedgerChart:
    """Draw what each deployment pays in time, bytes read and memory.

    Each row is 100% of its own total; the integers beside it sum to 100. Tints are accounts, in
    the same order and colour in every figure.

    Parameters
    ----------
    entries : polars.DataFrame
        ``Comparison.entries``: label, phase, resource, ledger, account, amount_device,
        amount_replica.
    table : polars.DataFrame, optional
        ``Comparison.table``: gives the operating point and the deployment in words.
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
        If columns are missing, or an option is unknown.

    Examples
    --------
    >>> import polars as pl
    >>> row = {"label": "Llama-3.1-8B", "phase": "decode", "resource": "time", "account": "dense"}
    >>> entries = pl.DataFrame(
    ...     [row | {"ledger": "ffn_mlp", "amount_device": 0.004, "amount_replica": None}]
    ... )
    >>> ledger_bars(entries, language="en").to_dict()["usermeta"]["ledgerkit"]["title"]
    'One deployment, three bills'
    """
    language = resolve_language(language)
    look = themes.resolve_theme(theme)
    size = themes.resolve_preset(preset, ("article", "phone"))
    bills, dropped = read_bills(entries)
    points = _points(table)
    canvas = Canvas(look, size.width)
    columns = LAYOUT[size.name]
    title = text.get("bars.title", language)
    subtitles = [_subtitle(points, language)]
    y = header(canvas, title, subtitles) + 3
    draw_bar_heads(canvas, y, columns, language)
    y += 27
    for bill in bills:
        y = _name(canvas, y, bill.label, points.get(bill.label, {}), language) + 22
        y = draw_bill(canvas, y, bill, columns, language, short=size.name == "phone") + 14
    y = draw_key(canvas, y + 4, bills, language)
    notes = [text.get("foot.bars", language), *left_out(dropped, language)]
    if not bills:
        notes = [text.get("triangle.choose", language)]
    height = foot(canvas, y + 12, notes)
    facts = {"title": title, "operating_point": subtitles[0]}
    frames: dict[str, Any] = {"entries": (entries, COLUMNS)}
    if table is not None:
        frames["table"] = (table, POINT_COLUMNS)
    return canvas.chart(
        height,
        description=_describe(bills, language, **facts),
        meta=meta(
            "ledger_bars",
            frames,
            {"language": language, "theme": look.name, "preset": size.name},
            **facts,
        ),
    )


def _points(table: pl.DataFrame | None) -> dict[str, dict[str, Any]]:
    """Operating point of each label; empty without a comparison table."""
    if table is None:
        return {}
    rows = read_rows(table, POINT_COLUMNS, "the ledger bars")
    return {row["label"]: row for row in rows if row["is_operating_point"]}


def _subtitle(points: Mapping[str, Mapping[str, Any]], language: Language) -> str:
    workloads = {(row["prompt_tokens"], row["concurrency"]) for row in points.values()}
    if len(workloads) == 1:
        prompt, concurrency = workloads.pop()
        return text.get(
            "bars.subtitle",
            language,
            prompt=numbers.context(prompt),
            concurrency=numbers.count(concurrency),
        )
    return text.get("bars.subtitle.own", language)


def _name(
    canvas: Canvas, y: float, label: str, point: Mapping[str, Any], language: Language
) -> float:
    """Name of a deployment and, after it, its machine and precision."""
    canvas.text(themes.MARGIN, y, label, size=themes.SUBTITLE, color=canvas.theme.ink, bold=True)
    words = point.get(f"deployment_text_{language}", "")
    start = themes.MARGIN + text_width(label, themes.SUBTITLE, bold=True) + 12
    room = canvas.width - themes.MARGIN - start
    if text_width(words, themes.SMALL) <= room:
        canvas.text(start, y, words)
        return y
    for line in wrap(words, canvas.width - 2 * themes.MARGIN, themes.SMALL):
        y += themes.FOOT_PITCH
        canvas.text(themes.MARGIN, y, line)
    return y


def _describe(
    bills: Sequence[Bill], language: Language, *, title: str, operating_point: str
) -> str:
    parts = []
    for bill in bills:
        for resource, (_, write) in RESOURCES.items():
            sums = bill.by_ledger(resource)
            if sum(sums) > 0:
                shares = dict(zip(("a", "f", "s"), numbers.share_texts(sums), strict=True))
                name = text.get(
                    "alt.row",
                    language,
                    label=bill.label,
                    resource=text.get(f"resource.{resource}", language),
                )
                parts.append(
                    text.get("alt.shares", language, label=name, total=write(sum(sums)), **shares)
                )
    return text.get(
        "alt.figure",
        language,
        title=title,
        operating_point=operating_point,
        items=text.get("alt.separator", language).join(parts),
        finding="",
    ).strip()
