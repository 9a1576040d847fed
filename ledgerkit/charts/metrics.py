"""Widths of text in the shipped font, measured without opening it.

Layout places words by their real width: an estimate by character class is 5% off, and 5% of a line
is a collision. The advances come from ``data/fonts/advance_widths.json``, which
``tools/build_fonts.py`` writes together with the font. Kerning is left out: it shortens a line by
less than 1%.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

from ledgerkit._data import data_path

__all__ = ["Box", "text_box", "text_width", "wrap"]

_WIDOW = 4.5
_NO_LINE_START = set("，。；：、？！）」』》")
_NO_LINE_END = set("（「『《(")


@lru_cache(maxsize=1)
def _advances() -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = json.loads(
        data_path("fonts", "advance_widths.json").read_text(encoding="utf-8")
    )
    return table


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Width of one line of text.

    Parameters
    ----------
    text : str
        The line.
    size : float
        Font size in px.
    bold : bool
        Weight 700 instead of 400.

    Returns
    -------
    float
        px.

    Examples
    --------
    >>> text_width("账", 12)
    12.0
    """
    advances = _advances()["bold" if bold else "regular"]
    return sum(advances.get(character, 1000) for character in text) * size / 1000


def _pieces(text: str) -> list[str]:
    """Smallest pieces that a line may break between: words, and single Chinese characters."""
    pieces: list[str] = []
    word = ""
    for character in text:
        wide = "\u2e80" <= character <= "\uffef"
        if character in _NO_LINE_END:
            pieces += [word] if word else []
            word = character
        elif character in _NO_LINE_START and (word or (pieces and pieces[-1] != " ")):
            # closing punctuation stays with what it follows, opening with what follows it
            pieces += [word] if word else []
            word = ""
            pieces[-1] += character
        elif wide or character == " ":
            if wide and word and word[-1] in _NO_LINE_END:
                pieces.append(word + character)
            else:
                pieces += [word] if word else []
                pieces.append(character)
            word = ""
        else:
            word += character
    return [*pieces, word] if word else pieces


def wrap(text: str, width: float, size: float, *, bold: bool = False) -> list[str]:
    """Break text into lines that are at most ``width`` wide.

    Chinese breaks anywhere but before closing punctuation, Latin between words only.

    Parameters
    ----------
    text : str
        One paragraph.
    width : float
        px.
    size : float
        Font size in px.
    bold : bool
        Weight 700 instead of 400.

    Returns
    -------
    list of str
        At least one line.

    Examples
    --------
    >>> wrap("nearer a corner = more of the bill there", 160, 12)
    ['nearer a corner = more of', 'the bill there']
    """
    lines: list[list[str]] = [[]]
    for piece in _pieces(text):
        whole = "".join([*lines[-1], piece]).rstrip()
        if lines[-1] and text_width(whole, size, bold=bold) > width:
            lines.append([])
        if piece != " " or lines[-1]:
            lines[-1].append(piece)
    # no widow: a last line of one or two characters takes some from the line before
    while len(lines) > 1 and len(lines[-2]) > 3:
        longer = "".join([lines[-2][-1], *lines[-1]]).strip()
        short = text_width("".join(lines[-1]), size, bold=bold) < _WIDOW * size
        if not short or text_width(longer, size, bold=bold) > width:
            break
        lines[-1].insert(0, lines[-2].pop())
    return ["".join(line).strip() for line in lines if line] or [""]


@dataclass(frozen=True)
class Box:
    """An upright rectangle in px.

    Parameters
    ----------
    left, top, right, bottom : float
        Edges, ``left <= right`` and ``top <= bottom``.

    Examples
    --------
    >>> Box(0, 0, 10, 10).overlap(Box(8, 5, 20, 20))
    (2, 5)
    """

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> tuple[float, float]:
        """Width and height of the common part; negative where the boxes are apart.

        Parameters
        ----------
        other : Box
            The other rectangle.

        Returns
        -------
        tuple of float

        Examples
        --------
        >>> Box(0, 0, 1, 1).overlap(Box(3, 0, 4, 1))
        (-2, 1)
        """
        return (
            min(self.right, other.right) - max(self.left, other.left),
            min(self.bottom, other.bottom) - max(self.top, other.top),
        )


def text_box(
    x: float, y: float, text: str, *, size: float, bold: bool = False, align: str = "left"
) -> Box:
    """Box of one line of text, as a browser measures it.

    Parameters
    ----------
    x, y : float
        Anchor in px, ``y`` at the middle of the line.
    text : str
        The line.
    size : float
        Font size in px.
    bold : bool
        Weight 700.
    align : {"left", "center", "right"}
        What ``x`` is.

    Returns
    -------
    Box

    Examples
    --------
    >>> text_box(100, 50, "账本", size=12, align="right").left
    76.0
    """
    width = text_width(text, size, bold=bold)
    left = x - {"left": 0.0, "center": width / 2, "right": width}[align]
    # the font's line box: 1.16 em above and 0.288 em below a baseline that is 0.3 em under y
    return Box(left, y - 0.86 * size, left + width, y + 0.588 * size)
