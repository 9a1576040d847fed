"""Makes the shipped font known to the renderer of exports."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ledgerkit._data import data_path

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["register_fonts"]


@cache
def register_fonts() -> Path:
    """Register the font with the renderer, once per process.

    Returns
    -------
    pathlib.Path
        Directory of the font files.

    Examples
    --------
    >>> sorted(path.suffix for path in register_fonts().iterdir() if path.suffix == ".otf")
    ['.otf', '.otf']
    """
    import vl_convert

    directory = data_path("fonts")
    vl_convert.register_font_directory(str(directory))
    return directory
