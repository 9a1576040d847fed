"""Which text colour reads on which area."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledgerkit.charts.theme import Theme

__all__ = ["contrast", "luminance", "readable_on"]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours (WCAG 2.2).

    Parameters
    ----------
    one, other : str
        ``#RRGGBB``.

    Returns
    -------
    float
        1 (equal) to 21.

    Examples
    --------
    >>> round(contrast("#FFFFFF", "#000000"))
    21
    """
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def readable_on(fill: str, theme: Theme) -> str:
    """Ink or background, whichever reads better on a colour.

    Parameters
    ----------
    fill : str
        ``#RRGGBB``.
    theme : Theme
        The look.

    Returns
    -------
    str

    Examples
    --------
    >>> from ledgerkit.charts.theme import THEMES
    >>> readable_on("#163F85", THEMES["article"])
    '#FFFFFF'
    """
    return max((theme.background, theme.ink), key=lambda color: contrast(color, fill))


def luminance(color: str) -> float:
    """Relative luminance (WCAG 2.2).

    Parameters
    ----------
    color : str
        ``#RRGGBB``.

    Returns
    -------
    float
        0 (black) to 1 (white).

    Examples
    --------
    >>> luminance("#FFFFFF")
    1.0
    """
    channels = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
