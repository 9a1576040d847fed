"""Key of the bars: the accounts that occur, in three columns, one per ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit import text
from ledgerkit.charts import theme as themes
from ledgerkit.charts.metrics import Box, text_width
from ledgerkit.spec.axes import LEDGERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.charts.bars import Bill
    from ledgerkit.charts.canvas import Canvas
    from ledgerkit.spec.axes import Ledger
    from ledgerkit.text import Language

__all__ = ["draw_key", "group_name"]

_SWATCH = 11.0
_PITCH = 19.0


def group_name(ledger: Ledger, group: str, accounts: Sequence[str], language: Language) -> str:
    """Name a group: by its account where it has only one, else by its own word.

    Parameters
    ----------
    ledger, group : str
        A key of :data:`ledgerkit.charts.theme.GROUPS`.
    accounts : sequence of str
        Accounts of the group that occur.
    language : {"zh", "en"}
        Language.

    Returns
    -------
    str

    Examples
    --------
    >>> group_name("scheduling", "communication", ["ep"], "en")
    'expert comm.'
    """
    if group == "other":
        return text.get("account.other", language)
    name = accounts[0] if len(accounts) == 1 else group
    return text.get(f"account.{ledger}.{name}", language)


def draw_key(canvas: Canvas, y: float, bills: Sequence[Bill], language: Language) -> float:
    """Draw the key.

    Parameters
    ----------
    canvas : Canvas
        Where to draw.
    y : float
        Middle of the heads, px.
    bills : sequence of Bill
        What the bars show.
    language : {"zh", "en"}
        Language.

    Returns
    -------
    float
        Where the foot may start, px.
    """
    theme = canvas.theme
    stacked = canvas.width < 500
    room = (canvas.width - 2 * themes.MARGIN) / (1 if stacked else 3)
    lowest = y
    for index, ledger in enumerate(LEDGERS):
        found: dict[str, set[str]] = {}
        for bill in bills:
            for groups in bill.amounts.values():
                for group in groups[ledger]:
                    found.setdefault(group, set()).update(bill.accounts.get((ledger, group), ()))
        if not found:
            continue
        left = themes.MARGIN + (0 if stacked else index * room)
        if stacked:
            y = lowest if index == 0 else lowest + 26
        canvas.rectangle(Box(left, y - 7, left + 4, y + 7), fill=theme.fill[ledger])
        name = text.get(f"ledger.{ledger}", language)
        canvas.text(left + 11, y, name, size=themes.SUBTITLE, color=theme.text[ledger], bold=True)
        x, line = left, y + 22
        for group in [group for group in theme.tints[ledger] if group in found] + [
            group for group in found if group not in theme.tints[ledger]
        ]:
            word = group_name(ledger, group, sorted(found[group]), language)
            width = _SWATCH + 6 + text_width(word, themes.SMALL)
            if x > left and x + width > left + room - 8:
                x, line = left, line + _PITCH
            color = theme.tints[ledger].get(group, theme.fill[ledger])
            canvas.rectangle(
                Box(x, line - _SWATCH / 2, x + _SWATCH, line + _SWATCH / 2), fill=color
            )
            canvas.text(x + _SWATCH + 6, line, word, color=theme.ink)
            x += width + 14
        lowest = max(lowest, line)
    return lowest + 22
