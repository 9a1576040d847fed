"""Rows of a frame as HTML."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import polars as pl

from ledgerkit._sweep.columns import COLUMNS
from ledgerkit.text import numbers
from ledgerkit.text.notes import note_in

_WRITTEN: Mapping[str, Callable[[float], str]] = {
    "s": numbers.duration,
    "B": numbers.byte_size,
    "tokens/s": numbers.rate,
}


def points_table(frame: pl.DataFrame) -> str:
    """Points of a sweep as a table, numbers with their units.

    Examples
    --------
    >>> "21.3 ms" in points_table(pl.DataFrame({"tpot_s": [0.0213]}))
    True
    """
    heads = "".join(f"<th scope='col'>{html.escape(name)}</th>" for name in frame.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_cell(name, value)}</td>" for name, value in row.items()) + "</tr>"
        for row in frame.iter_rows(named=True)
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "–"
    unit = COLUMNS[name].unit if name in COLUMNS else ""
    if isinstance(value, float) and unit in _WRITTEN:
        return html.escape(_WRITTEN[unit](value))
    return html.escape(f"{value:,.4g}" if isinstance(value, float) else str(value))


def note_list(notes: Iterable[str], language: str) -> str:
    """Notes as an HTML list in a language; nothing for none."""
    items = "".join(f"<li>{html.escape(note_in(note, language))}</li>" for note in notes)
    return f"<ul class='ledgerkit-note'>{items}</ul>" if items else ""
