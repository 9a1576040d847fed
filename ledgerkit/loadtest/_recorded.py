"""Real load tests that ship, so that one can look before having a server."""

from __future__ import annotations

from ledgerkit._data import data_path
from ledgerkit.errors import LoadTestError
from ledgerkit.loadtest._schema import Results

__all__ = ["recorded"]


def recorded(name: str) -> Results:
    """Load a recorded load test.

    Parameters
    ----------
    name : str
        ``smollm2-135m`` or ``gemma-3-270m``: llama.cpp on a CPU; ``provenance["device"]`` describes
        the machine as ``profile_local`` measured it, for ``lk.load_hardware``.

    Returns
    -------
    Results

    Raises
    ------
    LoadTestError
        There is no such test.

    Examples
    --------
    >>> recorded("gpt-7").cells
    Traceback (most recent call last):
    ...
    ledgerkit.errors.LoadTestError: no recorded load test has this name ...
    """
    path = data_path("loadtest", f"{name}.parquet")
    if not path.is_file():
        known = sorted(entry.stem for entry in data_path("loadtest").glob("*.parquet"))
        raise LoadTestError("no recorded load test has this name", given=name,
                            allowed=", ".join(known))  # fmt: skip
    return Results.load(path)
