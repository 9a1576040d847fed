"""How amounts are written: SI units with three digits, the real minus sign, integer shares.

Bytes are SI (1 GB = 10⁹ B); GiB appears only where an engine's log or a vendor is quoted. K in a
context length is 1024. Functions return text and take plain floats, so that any layer can use them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from ledgerkit.text import check_language

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "MINUS",
    "NOTHING",
    "byte_size",
    "change",
    "context",
    "count",
    "duration",
    "duration_band",
    "gib",
    "integer_shares",
    "milliseconds",
    "number_band",
    "percent",
    "rate",
    "share_texts",
    "si",
]

MINUS: Final = "\N{MINUS SIGN}"
NOTHING: Final = "\N{EN DASH}"
_PREFIXES: Final = ("", "k", "M", "G", "T", "P", "E")


_TO: Final = {"zh": "到", "en": "to"}


def _shared_unit(first: str, last: str) -> tuple[str, str]:
    """Drop the unit of the first amount where the second has the same."""
    number, _, unit = first.rpartition(" ")
    return (number if number and last.endswith(f" {unit}") else first), last


def _minus(text: str) -> str:
    return text.replace("-", MINUS)


def _three_digits(value: float) -> str:
    """Three significant digits of 0 <= value < 999.5."""
    return "0" if value == 0 else f"{value:#.3g}".rstrip(".")


def si(value: float, unit: str) -> str:
    """Write an amount with an SI prefix and three significant digits.

    Parameters
    ----------
    value : float
        The amount in ``unit``.
    unit : str
        Unit without prefix, such as ``"FLOP"`` or ``"B"``.

    Returns
    -------
    str

    Examples
    --------
    >>> si(70272, "B"), si(1.33e12, "B"), si(6.01e11, "FLOP")
    ('70.3 kB', '1.33 TB', '601 GFLOP')
    """
    size = abs(value)
    power = 0
    while size >= 999.5 and power < len(_PREFIXES) - 1:
        size /= 1000
        power += 1
    # whole amounts below one thousand are counts: 512 B, not 512.0 B
    number = f"{size:.0f}" if power == 0 and size == int(size) else _three_digits(size)
    sign = MINUS if value < 0 else ""
    return f"{sign}{number} {_PREFIXES[power]}{unit}"


def byte_size(value: float) -> str:
    """Write a number of bytes in SI units.

    Parameters
    ----------
    value : float
        Bytes.

    Returns
    -------
    str

    Examples
    --------
    >>> byte_size(4_820_000_000)
    '4.82 GB'
    """
    return si(value, "B")


def gib(value: float) -> str:
    """Write a number of bytes in GiB, one decimal, to stand beside its SI value.

    Parameters
    ----------
    value : float
        Bytes.

    Returns
    -------
    str

    Examples
    --------
    >>> gib(150_754_820_096)
    '140.4 GiB'
    """
    return f"{_minus(f'{value / 2**30:,.1f}')} GiB"


def context(tokens: float) -> str:
    """Write a context length, K = 1024.

    Parameters
    ----------
    tokens : float
        Tokens.

    Returns
    -------
    str

    Examples
    --------
    >>> context(8192), context(4070), context(131072), context(512), context(1048576)
    ('8K', '4.0K', '128K', '512', '1M')
    """
    if tokens < 1024:
        return f"{tokens:.0f}"
    kilo = tokens / 1024
    if kilo >= 1024 and kilo % 1024 == 0:
        return f"{kilo / 1024:.0f}M"
    if kilo == int(kilo) or kilo >= 9.95:
        return f"{kilo:,.0f}K"
    return f"{kilo:.1f}K"


def count(value: float) -> str:
    """Write a plain integer, thousands separated.

    Parameters
    ----------
    value : float
        A count.

    Returns
    -------
    str

    Examples
    --------
    >>> count(1385), count(32)
    ('1,385', '32')
    """
    return _minus(f"{value:,.0f}")


def duration(seconds: float) -> str:
    """Write a time: ms with one decimal below 100, none above, s from one second.

    Parameters
    ----------
    seconds : float
        Seconds.

    Returns
    -------
    str

    Examples
    --------
    >>> duration(0.0231), duration(0.414), duration(1.25), duration(38e-6), duration(15e-9)
    ('23.1 ms', '414 ms', '1.25 s', '38 µs', '15 ns')
    """
    size = abs(seconds)
    sign = MINUS if seconds < 0 else ""
    if size >= 999.5:
        return f"{sign}{size:,.0f} s"
    if size >= 0.9995:
        return f"{sign}{_three_digits(size)} s"
    if 0 < size < 5e-8:
        return f"{sign}{size * 1e9:.2g} ns"
    if 0 < size < 5e-5:
        return f"{sign}{size * 1e6:.2g} µs"
    return f"{sign}{milliseconds(size)} ms"


def milliseconds(seconds: float) -> str:
    """Write the number of milliseconds without its unit, for a column headed ms.

    Parameters
    ----------
    seconds : float
        Seconds.

    Returns
    -------
    str

    Examples
    --------
    >>> milliseconds(0.0231), milliseconds(0.2), milliseconds(2.5)
    ('23.1', '200', '2,500')
    """
    value = seconds * 1e3
    return _minus(f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.1f}")


def rate(tokens_per_s: float) -> str:
    """Write a token rate.

    Parameters
    ----------
    tokens_per_s : float
        Tokens per second.

    Returns
    -------
    str

    Examples
    --------
    >>> rate(43.2), rate(1385.1), rate(4.31)
    ('43 token/s', '1,385 token/s', '4.3 token/s')
    """
    number = f"{tokens_per_s:.1f}" if tokens_per_s < 9.95 else f"{tokens_per_s:,.0f}"
    return f"{number} token/s"


def percent(fraction: float, *, signed: bool = False) -> str:
    """Write a fraction as an integer percentage.

    Parameters
    ----------
    fraction : float
        1.0 is 100%.
    signed : bool
        Print a plus sign before a gain.

    Returns
    -------
    str

    Examples
    --------
    >>> percent(0.35), percent(-0.56, signed=True), percent(0.6, signed=True)
    ('35%', '−56%', '+60%')
    """
    return _minus(f"{fraction * 100:+.0f}%" if signed else f"{fraction * 100:.0f}%")


def integer_shares(amounts: Sequence[float]) -> list[int]:
    """Shares in integer percent that sum to 100 (largest remainder).

    An amount under half a percent gets 0, so that it can be printed as ``<1``.

    Parameters
    ----------
    amounts : sequence of float
        Amounts of one resource, none negative.

    Returns
    -------
    list of int
        As long as ``amounts``; all 0 when nothing is booked.

    Examples
    --------
    >>> integer_shares([1, 1, 1]), integer_shares([50.2, 49.4, 0.4]), integer_shares([0, 0])
    ([34, 33, 33], [50, 50, 0], [0, 0])
    """
    total = math.fsum(amounts)
    if not total > 0:
        return [0 for _ in amounts]
    exact = [100 * amount / total for amount in amounts]
    shares = [math.floor(value) if value >= 0.5 else 0 for value in exact]
    order = sorted(
        (index for index, value in enumerate(exact) if value >= 0.5),
        key=lambda index: (shares[index] - exact[index], index),
    )
    missing = 100 - sum(shares)
    for position in range(missing):
        shares[order[position % len(order)]] += 1
    return shares


def share_texts(amounts: Sequence[float]) -> list[str]:
    """Write shares of one resource for a table row.

    Parameters
    ----------
    amounts : sequence of float
        Amounts of one resource, none negative.

    Returns
    -------
    list of str
        Integers that sum to 100, ``<1`` for a trace, an en dash where nothing is booked.

    Examples
    --------
    >>> share_texts([22, 77.8, 0.2]), share_texts([43, 57, 0])
    (['22', '78', '<1'], ['43', '57', '–'])
    """
    return [
        NOTHING if amount <= 0 else (str(share) if share else "<1")
        for amount, share in zip(amounts, integer_shares(amounts), strict=True)
    ]


def duration_band(low: float, high: float, language: str | None = None) -> str:
    """Write a band of time, both ends in the unit of the upper one, to about two digits.

    Parameters
    ----------
    low, high : float
        Seconds.
    language : {"zh", "en"}, optional
        Default: the process default.

    Returns
    -------
    str

    Examples
    --------
    >>> duration_band(0.0201, 0.0293, "zh"), duration_band(0.61, 1.44, "en")
    ('20 到 29 ms', '0.6 to 1.4 s')
    """
    unit, scale = ("s", 1.0) if high >= 0.9995 else ("ms", 1e3)
    first, last = (
        f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"
        for value in (low * scale, high * scale)
    )
    return f"{first} {_TO[check_language(language)]} {last} {unit}"


def number_band(
    low: float, high: float, write: Callable[[float], str], language: str | None = None
) -> str:
    """Write a band of any amount, its unit once where both ends share it.

    Parameters
    ----------
    low, high : float
        Ends of the band.
    write : callable
        One of the writers of this module, such as :func:`byte_size`.
    language : {"zh", "en"}, optional
        Default: the process default.

    Returns
    -------
    str

    Examples
    --------
    >>> number_band(28.1e9, 31e9, byte_size, "en"), number_band(1100, 1500, rate, "zh")
    ('28.1 to 31.0 GB', '1,100 到 1,500 token/s')
    """
    first, last = _shared_unit(write(low), write(high))
    return f"{first} {_TO[check_language(language)]} {last}"


def change(
    before: float, after: float, write: Callable[[float], str], language: str | None = None
) -> str:
    """Write a change as before → after with its percentage.

    Parameters
    ----------
    before, after : float
        Amounts in the same unit.
    write : callable
        One of the writers of this module.
    language : {"zh", "en"}, optional
        Default: the process default.

    Returns
    -------
    str

    Examples
    --------
    >>> change(0.0299, 0.0131, duration, "zh"), change(10, 11, count, "en")
    ('29.9 → 13.1 ms（−56%）', '10 → 11 (+10%)')
    """
    first, last = _shared_unit(write(before), write(after))
    if before == 0:
        return f"{first} → {last}"
    size = percent(after / before - 1, signed=True)
    brackets = {"zh": f"（{size}）", "en": f" ({size})"}[check_language(language)]
    return f"{first} → {last}{brackets}"
