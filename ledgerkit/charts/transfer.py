"""The transfer chart: what a technique saves to the left, what it pays to the right."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts._arrow import draw_triangle
from ledgerkit.charts._contrast import readable_on
from ledgerkit.charts._page import foot, header, meta, resolve_language
from ledgerkit.charts._trails import read_rows
from ledgerkit.charts.canvas import MARK, Canvas
from ledgerkit.charts.metrics import Box, text_width, wrap
from ledgerkit.errors import FigureError
from ledgerkit.text import numbers

if TYPE_CHECKING:
    import polars as pl

    from ledgerkit._techniques.double_entry import Transfer
    from ledgerkit.charts._chart import LedgerChart
    from ledgerkit.charts.theme import Theme
    from ledgerkit.text import Language

__all__ = ["Group", "Line", "draw_bars", "draw_triangle", "read_groups", "transfer_bars"]

COLUMNS: Final = ("phase", "resource", "ledger", "account", "before", "after", "change")
SUMMARY: Final = (
    "model", "prompt_tokens", "concurrency", "books_a_cost", "is_empty",
    *(f"{side}_{name}" for side in ("before", "after")
      for name in ("deployment_zh", "deployment_en", "fits", "resident_bytes", "limit_bytes",
                   "ttft_s", "tpot_s")),
    "title_zh", "title_en", "break_even_zh", "break_even_en", "risk_zh", "risk_en",
)  # fmt: skip
ZERO: Final = 438.0
REACH: Final = 228.0
_SCALES: Final = (0.64, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_ROW: Final = 26.0
_BAR: Final = 18.0
_INSIDE: Final = 150.0
_SMALL_SHARE: Final = 0.005
_GROUPS: Final = (
    ("compute_less", ("compute",)),
    ("read_less", ("read", "write")),
    ("store_less", ("resident",)),
    ("communicate_less", ("communicate",)),
    ("schedule_better", ("steps",)),
    ("schedule_better", ("time",)),
)
_UNITS: Final = {"compute": "FLOP", "read": "B", "resident": "B", "communicate": "B"}


@dataclass(frozen=True)
class Line:
    """One account that changes.

    Parameters
    ----------
    ledger, account : str
        Who pays; the account is ``"other"`` for what is too small to show.
    change : float
        Negative is saved.
    share : float
        Of the total before; ±1 where nothing was paid before.
    """

    ledger: str
    account: str
    change: float
    share: float


@dataclass(frozen=True)
class Group:
    """One verb: its totals and the accounts that change.

    Parameters
    ----------
    verb, resource, phase : str
        What is done less or more of, and when.
    before, after : float
        Totals of all accounts.
    lines : tuple of Line
        Credits and debits, largest first.
    """

    verb: str
    resource: str
    phase: str
    before: float
    after: float
    lines: tuple[Line, ...]


def read_groups(table: pl.DataFrame, phase: str) -> list[Group]:
    """Gather the rows of a transfer by verb.

    Parameters
    ----------
    table : polars.DataFrame
        ``Transfer.table``.
    phase : {"prefill", "decode"}
        Residence is always that of ``hold``.

    Returns
    -------
    list of Group
        Those with a change worth a row.

    Raises
    ------
    FigureError
        If columns are missing.
    """
    rows = read_rows(table, COLUMNS, "the transfer chart")
    found = []
    for verb, resources in _GROUPS:
        where = _where(rows, resources, phase)
        mine = [r for r in rows if r["phase"] == where and r["resource"] in resources]
        before = math.fsum(r["before"] for r in mine)
        after = math.fsum(r["after"] for r in mine)
        if resources == ("time",):  # of the seconds, waiting for others has no other resource
            mine = [r for r in mine if r["account"] == "queue"]
        changes: dict[tuple[str, str], float] = {}
        for row in mine:
            key = (row["ledger"], row["account"])
            changes[key] = changes.get(key, 0.0) + row["change"]
        lines = _lines(changes, before)
        if lines:
            found.append(Group(verb, resources[0], where, before, after, lines))
    return found


def _where(rows: list[dict[str, Any]], resources: tuple[str, ...], phase: str) -> str:
    """Phase to show: the one asked for, or the other one where only that changes."""
    if resources == ("resident",):
        return "hold"
    for name in (phase, "prefill" if phase == "decode" else "decode"):
        if any(r["change"] for r in rows if r["phase"] == name and r["resource"] in resources):
            return name
    return phase


def _lines(changes: dict[tuple[str, str], float], before: float) -> tuple[Line, ...]:
    kept: list[Line] = []
    rest: dict[str, float] = {}
    for (ledger, account), change in changes.items():
        if not change:
            continue
        share = change / before if before else math.copysign(1.0, change)
        if abs(share) >= _SMALL_SHARE:
            kept.append(Line(ledger, account, change, share))
        else:
            rest[ledger] = rest.get(ledger, 0.0) + change
    if not kept:
        return ()
    for ledger, change in rest.items():
        share = change / before if before else math.copysign(1.0, change)
        if abs(share) >= _SMALL_SHARE:
            kept.append(Line(ledger, "other", change, share))
    return tuple(sorted(kept, key=lambda line: (line.change > 0, -abs(line.change))))


def transfer_bars(
    table: pl.DataFrame,
    summary: pl.DataFrame,
    *,
    language: str | None = None,
    theme: str | Theme | None = None,
    preset: str | None = None,
    phase: str = "decode",
) -> LedgerChart:
    """Draw the double entry of a technique: credits left, debits right.

    Parameters
    ----------
    table : polars.DataFrame
        ``Transfer.table``.
    summary : polars.DataFrame
        ``Transfer.summary()``.
    language : {"zh", "en"}, optional
        Default: that of :func:`ledgerkit.set_language`.
    theme : {"article", "slide", "dark"}, optional
        Colours.
    preset : {"article"}, optional
        700 px.
    phase : {"decode", "prefill"}
        Whose compute, bytes and steps to draw; what changes in the other only is drawn, too.

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
    >>> found = lk.transfer("mqa", model="llama-3.1-8b", hardware="h100-sxm-80gb", workload=work)
    >>> chart = transfer_bars(found.table, found.summary(), language="en")
    >>> chart.to_dict()["usermeta"]["ledgerkit"]["title"]
    'Where the bill goes: MQA'
    """
    language = resolve_language(language)
    look = themes.resolve_theme(theme)
    size = themes.resolve_preset(preset, ("article",))
    if phase not in ("decode", "prefill"):
        raise FigureError("unknown phase", given=phase, allowed="decode, prefill")
    about = read_rows(summary, SUMMARY, "the transfer chart")[0]
    groups = read_groups(table, phase)
    largest = max((abs(line.share) for group in groups for line in group.lines), default=0.0)
    scale = next((step for step in _SCALES if largest <= step), _SCALES[-1])
    canvas = Canvas(look, size.width)
    title = text.get("transfer.title", language, title=about[f"title_{language}"])
    point = text.get(
        "transfer.point", language, model=about["model"],
        deployment=about[f"before_deployment_{language}"],
        prompt=numbers.context(about["prompt_tokens"]),
        concurrency=numbers.count(about["concurrency"]),
    )  # fmt: skip
    bars = text.get("transfer.scale.device", language, scale=numbers.percent(scale))
    y = header(canvas, title, [point, bars])
    if groups:
        y = _draw_groups(canvas, y, groups, scale, language)
    finding = _draw_net(canvas, y, about, phase, scale, language)
    y = _draw_notes(canvas, y + 62, about, language, drawn=bool(groups))
    height = foot(canvas, y + 8, [text.get("transfer.foot", language)])
    facts = {"title": title, "operating_point": f"{point} {bars}"}
    options = {"language": language, "theme": look.name, "preset": size.name, "phase": phase}
    return canvas.chart(
        height,
        description=f"{title}. {point}. {finding}",
        meta=meta(
            "transfer_bars", {"table": (table, COLUMNS), "summary": (summary, SUMMARY)}, options,
            **facts, finding=finding,
        ),
    )  # fmt: skip


def _amount(resource: str, value: float) -> str:
    if resource == "time":
        return numbers.duration(value)
    return (
        numbers.count(round(value)) if resource == "steps" else numbers.si(value, _UNITS[resource])
    )


def _change(before: float, after: float, language: Language) -> str:
    if not before:
        return text.get("transfer.new", language)
    return numbers.percent(after / before - 1, signed=True)


def _brackets(value: str, inner: str, language: Language) -> str:
    return f"{value}（{inner}）" if language == "zh" else f"{value} ({inner})"


def _draw_groups(
    canvas: Canvas, y: float, groups: list[Group], scale: float, language: Language
) -> float:
    look, right = canvas.theme, canvas.width - themes.MARGIN
    canvas.text(ZERO - 16, y, text.get("side.saved", language), size=themes.SUBTITLE, bold=True,
                color=look.ink, align="right")  # fmt: skip
    canvas.text(ZERO + 12, y, text.get("side.paid", language), size=themes.SUBTITLE, bold=True,
                color=look.ink)  # fmt: skip
    top = y + 18
    y += 22
    for group in groups:
        canvas.segment((themes.MARGIN, y), (right, y), look.grid)
        head = "saved" if group.after < group.before else "paid"
        if group.resource == "time":  # the queue alone, not all seconds
            head = "saved" if group.lines[0].change < 0 else "paid"
        word = text.get(f"verb.{head}.{group.verb}", language)
        canvas.text(themes.MARGIN, y + 17, word, size=themes.SUBTITLE, bold=True, color=look.ink)
        unit = text.get(f"transfer.unit.{group.resource}", language)
        if group.phase != "hold":
            comma = "，" if language == "zh" else ", "
            unit += comma + text.get(f"phase.{group.phase}", language)
        canvas.text(themes.MARGIN + text_width(word, themes.SUBTITLE, bold=True) + 10, y + 17, unit)
        if group.resource != "time":
            totals = " → ".join(_amount(group.resource, v) for v in (group.before, group.after))
            change = _change(group.before, group.after, language)
            canvas.text(right, y + 17, _brackets(totals, change, language), align="right")
        y += 42
        for line in group.lines:
            _draw_line(canvas, y, line, group.resource, scale, language)
            y += _ROW
        y += 4
    canvas.segment((ZERO, top), (ZERO, y), look.ink, width=1.6, level=MARK)
    return y


def _draw_line(
    canvas: Canvas, y: float, line: Line, resource: str, scale: float, language: Language
) -> None:
    look, left = canvas.theme, themes.MARGIN
    canvas.rectangle(Box(left, y - 8, left + 4, y + 8), fill=look.fill[line.ledger])
    key = "account.other" if line.account == "other" else f"account.{line.ledger}.{line.account}"
    name = text.get(key, language)
    canvas.text(left + 12, y, name, color=look.ink)
    start = left + 12 + text_width(name, themes.SMALL) + 10
    owner = text.get(f"ledger.plain.{line.ledger}", language)
    canvas.text(start, y, owner, color=look.text[line.ledger])
    taken = start + text_width(owner, themes.SMALL) + 8
    length = max(1.5, REACH * min(abs(line.share), scale) / scale)
    saved = line.change < 0
    box = (
        Box(ZERO - length, y - _BAR / 2, ZERO, y + _BAR / 2)
        if saved
        else Box(ZERO, y - _BAR / 2, ZERO + length, y + _BAR / 2)
    )
    sign = "\u2212" if saved else "+"
    value = sign + _amount(resource, abs(line.change))
    share = numbers.percent(line.share, signed=True)
    if abs(line.share) == 1.0 and not saved:
        share = text.get("transfer.new", language)
    words = _brackets(value, share, language) if resource != "time" else value
    tip = {name: words}
    if saved:
        canvas.rectangle(box, fill=look.fill[line.ledger], tip=tip)
        inside = length > _INSIDE
        color = readable_on(look.fill[line.ledger], look) if inside else look.ink
        if not inside and ZERO - length - 8 - text_width(words, themes.SMALL) < taken:
            canvas.text(ZERO + 8, y, words, color=color)  # no room beside the name
            return
        canvas.text(ZERO - 8 if inside else ZERO - length - 8, y, words, align="right", color=color)
        return
    canvas.rectangle(box, fill=look.wash[line.ledger], stroke=look.fill[line.ledger], width=1.6,
                     tip=tip)  # fmt: skip
    room = canvas.width - themes.MARGIN - (ZERO + length)
    if text_width(words, themes.SMALL) + 12 < room:
        canvas.text(ZERO + length + 8, y, words, color=look.ink)
    else:
        canvas.text(ZERO + 8, y, words, color=look.ink)


def _draw_net(
    canvas: Canvas, y: float, about: dict[str, Any], phase: str, scale: float, language: Language
) -> str:
    look, right = canvas.theme, canvas.width - themes.MARGIN
    name = "tpot_s" if phase == "decode" else "ttft_s"
    before, after = about[f"before_{name}"], about[f"after_{name}"]
    canvas.segment((themes.MARGIN, y + 8), (right, y + 8), look.ink, width=1.2)
    what = text.get(f"transfer.net.{phase}", language)
    net = text.get("transfer.net", language)
    canvas.text(themes.MARGIN, y + 32, net, size=themes.CORNER, bold=True, color=look.ink)
    indent = themes.MARGIN + text_width(net, themes.CORNER, bold=True) + 12
    canvas.text(indent, y + 32, what)
    words = numbers.change(before, after, numbers.duration, language)
    length = REACH * min(scale, abs(after / before - 1)) / scale if before else 0.0
    faster = after < before
    box = (
        Box(ZERO - length, y + 20, ZERO, y + 44)
        if faster
        else Box(ZERO, y + 20, ZERO + length, y + 44)
    )
    if length > 1:
        canvas.rectangle(box, fill=look.ink if faster else look.background, stroke=look.ink,
                         width=1.6)  # fmt: skip
    width = text_width(words, themes.SUBTITLE, bold=True) + 20
    if faster and width < length:
        canvas.text(ZERO - 10, y + 32, words, size=themes.SUBTITLE, bold=True,
                    color=look.background, align="right")  # fmt: skip
    else:
        start = ZERO + 10 if faster or width < length else ZERO + length + 10
        if start + width - 20 > right:
            start = right - width + 20
            canvas.text(start, y + 60, words, size=themes.SUBTITLE, bold=True, color=look.ink)
        else:
            canvas.text(start, y + 32, words, size=themes.SUBTITLE, bold=True, color=look.ink)
    return text.get("transfer.finding", language, what=what, change=words)


def _draw_notes(
    canvas: Canvas, y: float, about: dict[str, Any], language: Language, *, drawn: bool
) -> float:
    look = canvas.theme
    notes: list[tuple[str, str]] = []
    if about["is_empty"] or not drawn:
        notes.append((text.get("transfer.net", language),
                      text.get("transfer.none.change", language)))  # fmt: skip
    turns = [turn for turn in about[f"break_even_{language}"].split("\n") if turn]
    head = text.get("note.break_even", language)
    notes += [(head if n == 0 else "", turn) for n, turn in enumerate(turns)]
    capacity = text.get(
        "transfer.capacity", language,
        before=numbers.byte_size(about["before_resident_bytes"]),
        after=numbers.byte_size(about["after_resident_bytes"]),
        before_fits=text.get(f"fits.{about['before_fits']}", language),
        after_fits=text.get(f"fits.{about['after_fits']}", language),
        limit=numbers.byte_size(about["after_limit_bytes"]),
    )  # fmt: skip
    notes.append((text.get("transfer.note.capacity", language), capacity))
    outside = about[f"risk_{language}"]
    notes.append((text.get("note.not_booked", language), outside))
    if not about["books_a_cost"] and not about["is_empty"]:
        notes.append(("", text.get("transfer.none.cost", language)))
    widest = max(text_width(name, themes.SMALL, bold=True) for name, _ in notes)
    indent = themes.MARGIN + widest + 12
    for name, words in notes:
        canvas.text(themes.MARGIN, y, name, bold=True, color=look.ink)
        for line in wrap(words, canvas.width - themes.MARGIN - indent, themes.SMALL):
            canvas.text(indent, y, line)
            y += themes.FOOT_PITCH + 2
        y += 3
    return y


def draw_bars(transfer: Transfer, **options: Any) -> LedgerChart:
    """Draw the credits and debits of a transfer; options as in :func:`transfer_bars`."""
    return transfer_bars(transfer.table, transfer.summary(), **options)
