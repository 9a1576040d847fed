"""Build ``data/hardware.parquet`` from ``data/hardware.csv``.

Run ``python -m ledgerkit.catalog.build`` in a checkout after a change of the text and commit both
files; a test compares them. The same text and the same polars give the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit._data import data_path
from ledgerkit.catalog.hardware import COLUMNS, records

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

__all__ = ["build", "frame"]


def frame() -> pl.DataFrame:
    """Device table with typed columns, from the text.

    Examples
    --------
    >>> frame().schema["memory_bytes"], frame().schema["unverified_fields"]
    (Int64, List(String))
    """
    import polars as pl

    types: dict[type, pl.DataType | type[pl.DataType]] = {
        str: pl.String,
        int: pl.Int64,
        float: pl.Float64,
        bool: pl.Boolean,
        tuple: pl.List(pl.String),
    }
    rows = [
        {name: list(value) if isinstance(value, tuple) else value for name, value in row.items()}
        for row in records()
    ]
    return pl.DataFrame(rows, schema={name: types[kind] for name, kind in COLUMNS.items()})


def build(path: Path | None = None) -> Path:
    """Write the table; no statistics or clock goes into the file, so that it is reproducible.

    Parameters
    ----------
    path : Path, optional
        Where to write; None writes ``data/hardware.parquet``.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as place:
    ...     build(pathlib.Path(place) / "hardware.parquet").name
    'hardware.parquet'
    """
    target = data_path("hardware.parquet") if path is None else path
    frame().write_parquet(target, compression="zstd", compression_level=3, statistics=False)
    return target


if __name__ == "__main__":
    build()
