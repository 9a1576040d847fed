"""Where the shipped data are: inside the wheel, or at the top of a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ledgerkit.errors import CatalogError

__all__ = ["data_directory", "data_path"]


@cache
def data_directory() -> Path:
    """Return the directory that holds ``models/``, the device table and fonts.

    Raises
    ------
    CatalogError
        Neither the packaged nor the checkout's directory is there.

    Examples
    --------
    >>> (data_directory() / "models" / "deepseek-v3.json").is_file()
    True
    """
    package = Path(__file__).resolve().parent
    for candidate in (package / "_packaged", package.parent / "data"):
        if (candidate / "models").is_dir():
            return candidate
    raise CatalogError("the data of ledgerkit are missing", given=str(package),
                       fix="install the wheel again, or run from a complete checkout")  # fmt: skip


def data_path(*parts: str) -> Path:
    """Path of a data file or directory below the data directory; it need not exist.

    Examples
    --------
    >>> data_path("hardware.csv").is_file()
    True
    """
    return data_directory().joinpath(*parts)
