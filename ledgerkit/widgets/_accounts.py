"""Numbers of one deployment as text: key numbers, accounts, and how one of them comes about."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ledgerkit.charts.theme import GROUPS, THEMES
from ledgerkit.errors import LedgerError
from ledgerkit.spec.axes import Ledger as LedgerName
from ledgerkit.text import get, numbers
from ledgerkit.widgets._tables import note_list

if TYPE_CHECKING:
    from ledgerkit._ledger import Ledger

_COLUMNS = (("time", "decode"), ("read", "decode"), ("resident", "hold"))


def key_numbers(books: Ledger, language: str) -> str:
    """Key numbers as a table that a screen reader reads in order.

    Parameters
    ----------
    books : Ledger
        The deployment.
    language : {"zh", "en"}
        Of the words.

    Returns
    -------
    str
        HTML.
    """
    fits = get(f"explorer.fits.{books.fits}", language)
    rows = (
        ("tpot", numbers.duration(books.tpot_s),
         numbers.duration_band(books.tpot_s_low, books.tpot_s_high, language)),
        ("ttft", numbers.duration(books.ttft_s),
         numbers.duration_band(books.ttft_s_low, books.ttft_s_high, language)),
        ("sequence", numbers.rate(1.0 / books.tpot_s), ""),
        ("replica", numbers.rate(books.tokens_per_s), ""),
        ("memory", numbers.byte_size(books.resident_bytes_device),
         f"/ {numbers.byte_size(books.capacity_bytes)} · {fits}"),
        ("seats", numbers.count(books.max_concurrency), ""),
    )  # fmt: skip
    cells = "".join(
        f"<tr data-key='{key}'><th scope='row'>{html.escape(get(f'explorer.{key}', language))}</th>"
        f"<td><b>{html.escape(value)}</b></td><td>{html.escape(band)}</td></tr>"
        for key, value, band in rows
    )
    table = f"<table class='ledgerkit-numbers'>{cells}</table>"
    return table + note_list(books.notes, language)


def booked_accounts(books: Ledger) -> list[tuple[LedgerName, str, dict[str, float]]]:
    """Accounts with their amounts: (ledger, account, {time, read, resident}), largest time first.

    Time is that of the busiest device, bytes are summed over the replica.
    """
    found: dict[tuple[LedgerName, str], dict[str, float]] = {}
    columns = ("phase", "ledger", "account", "resource", "amount_device", "amount_replica")
    for phase, ledger, account, resource, device, replica in books.entries.select(
        columns
    ).iter_rows():
        if (resource, phase) not in _COLUMNS:
            continue
        amount = device if resource == "time" else replica
        if amount:
            row = found.setdefault((ledger, account), {})
            row[resource] = row.get(resource, 0.0) + amount
    listed = [(ledger, account, row) for (ledger, account), row in found.items()]
    return sorted(listed, key=lambda one: (-one[2].get("time", 0.0), *one[:2]))


def account_table(books: Ledger, language: str, theme: str) -> str:
    """Accounts as a table with the colours of the bars.

    Parameters
    ----------
    books : Ledger
        The deployment.
    language : {"zh", "en"}
    theme : {"article", "dark"}

    Returns
    -------
    str
        HTML.
    """
    look = THEMES[theme]
    head = "".join(
        f"<th scope='col'>{html.escape(get(f'widget.accounts.{name}', language))}</th>"
        for name, _ in _COLUMNS
    )
    rows = []
    for ledger, account, amounts in booked_accounts(books):
        group = next((name for name, held in GROUPS[ledger].items() if account in held), "other")
        swatch = look.tints[ledger][group]
        name = html.escape(get(f"account.{ledger}.{account}", language))
        shown = (
            _amount(amounts, "time", numbers.duration),
            _amount(amounts, "read", numbers.byte_size),
            _amount(amounts, "resident", numbers.byte_size),
        )
        rows.append(
            f"<tr><td><span class='ledgerkit-swatch' style='background:{swatch}'></span>{name}"
            f"</td>{''.join(f'<td>{value}</td>' for value in shown)}</tr>"
        )
    title = html.escape(get("widget.accounts", language))
    first = html.escape(get("widget.account", language))
    return (
        f"<h4>{title}</h4><table><thead><tr><th scope='col'>{first}</th>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _amount(amounts: dict[str, float], name: str, written: Callable[[float], str]) -> str:
    return html.escape(written(amounts[name])) if name in amounts else "–"


def explanations(books: Ledger, account: str, language: str) -> str:
    """How the decode time of an account comes about, to be redone on paper.

    Parameters
    ----------
    books : Ledger
        The deployment.
    account : str
        Name of an account; empty explains nothing.
    language : {"zh", "en"}

    Returns
    -------
    str
        HTML.
    """
    if not account:
        return ""
    try:
        found: Iterable[Any] = books.explain(account)
    except LedgerError as error:
        return f"<p class='ledgerkit-note'>{html.escape(str(error))}</p>"
    blocks = []
    for one in found:
        values = "\n".join(f"  {name} = {value:.10g}" for name, value in one.values.items())
        label, formula, values, source = (
            f"<span data-code>{html.escape(part)}</span>"
            for part in (one.label, one.expression, values, one.source)
        )
        basis, given, origin = (
            html.escape(get(key, language))
            for key in (f"basis.{one.basis}", "widget.explain.with", "widget.explain.source")
        )
        amount = html.escape(numbers.duration(one.amount))
        blocks.append(
            f"<pre>{label}\n= {amount}  ({basis})\n= {formula}\n{given}\n{values}\n"
            f"{origin}: {source}</pre>"
        )
    return "".join(blocks)
