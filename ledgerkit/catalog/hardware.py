"""The device catalogue: peaks, memory, links and prices, each row with its source.

``data/hardware.csv`` is the text that people review; ``data/hardware.parquet`` is built from it
(:mod:`ledgerkit.catalog.build`). One device is read from the text with the standard library, so
that a first ledger does not wait for a data-frame library.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ledgerkit._data import data_path
from ledgerkit.catalog._registry import normal_name, registered, unknown
from ledgerkit.errors import CatalogError, HardwareError
from ledgerkit.spec._base import named_fields
from ledgerkit.spec.hardware import Hardware

if TYPE_CHECKING:
    import polars as pl

__all__ = ["COLUMNS", "PEAK_COLUMNS", "hardware", "load_hardware", "records"]

GROUP = "ledgerkit.hardware"

PEAK_COLUMNS = {
    "fp32": "fp32_flop_per_s",
    "tf32": "tf32_flop_per_s",
    "fp16": "fp16_flop_per_s",
    "bf16": "bf16_flop_per_s",
    "fp8": "fp8_flop_per_s",
    "int8": "int8_op_per_s",
    "fp6": "fp6_flop_per_s",
    "fp4": "fp4_flop_per_s",
    "int4": "int4_op_per_s",
}
"""Column of the dense peak of each compute dtype; an empty cell means that the device lacks it."""

COLUMNS: dict[str, type] = {
    "slug": str,
    "vendor": str,
    "family": str,
    "release_year": int,
    "form_factor": str,
    "memory_type": str,
    "memory_gb": float,
    "memory_bytes": int,
    "memory_is_lower_bound": bool,
    "memory_bytes_per_s": float,
    **dict.fromkeys(PEAK_COLUMNS.values(), float),
    "l2_mb": float,
    "scaleup_name": str,
    "scaleup_bytes_per_s": float,
    "scaleup_domain_size": int,
    "pcie_generation": int,
    "pcie_bytes_per_s": float,
    "nic_bytes_per_s": float,
    "host_memory_bytes_per_s": float,
    "tdp_w": float,
    "usd_per_hour": float,
    "usd_per_hour_date": str,
    "usd_per_hour_source": str,
    "usd_per_hour_3_year": float,
    "usd_per_hour_3_year_date": str,
    "usd_per_hour_3_year_source": str,
    "source": str,
    "source2": str,
    "confidence": str,
    "unverified_fields": tuple,
    "notes": str,
}
"""Columns of the table and their types. Rates are bytes per second in one direction and per
device, peaks are dense FLOP (or integer operations) per second, GB and MB are as the vendor
prints them. ``memory_is_lower_bound`` is derived: the vendor states whole GB only."""

_RENAMED = {"usd_per_hour_date": "price_date", "usd_per_hour_source": "price_source"}
_FIELDS = frozenset(Hardware.model_fields)


@lru_cache(maxsize=1)
def _text() -> dict[str, dict[str, str]]:
    with data_path("hardware.csv").open(encoding="utf-8", newline="") as file:
        return {row["slug"]: row for row in csv.DictReader(file)}


def _typed(column: str, cell: Any) -> Any:
    kind = COLUMNS[column]
    if cell is None or cell == "":
        return () if kind is tuple else None
    if kind is tuple:
        return tuple(cell.split() if isinstance(cell, str) else cell)
    try:
        if kind is int and isinstance(cell, str):
            return int(cell)
        return kind(cell)
    except (TypeError, ValueError):
        raise HardwareError(
            f"{column} must be a {'number' if kind in (int, float) else kind.__name__}", given=cell
        ) from None


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    """Type a row and say how many bytes of memory count."""
    strange = sorted(set(row) - set(COLUMNS))
    if strange:
        raise HardwareError(
            f"a device has no column {strange[0]!r}", given=row[strange[0]],
            allowed=", ".join(COLUMNS),
        )  # fmt: skip
    record = {column: _typed(column, row.get(column)) for column in COLUMNS}
    if record["memory_bytes"] is None and record["memory_gb"] is not None:
        record["memory_bytes"] = round(record["memory_gb"] * 1e9)
        record["memory_is_lower_bound"] = True
    record["memory_is_lower_bound"] = bool(record["memory_is_lower_bound"])
    return record


def records() -> list[dict[str, Any]]:
    """Every built-in device as typed columns, in the order of the text.

    Examples
    --------
    >>> records()[0]["memory_is_lower_bound"], len(records())
    (True, 92)
    """
    return [_record(row) for row in _text().values()]


def _device(record: Mapping[str, Any]) -> Hardware:
    fields = {
        _RENAMED.get(column, column): value
        for column, value in record.items()
        if value is not None and _RENAMED.get(column, column) in _FIELDS
    }
    peaks = {
        dtype: record[column]
        for dtype, column in PEAK_COLUMNS.items()
        if record[column] is not None
    }
    return Hardware(**fields, peak_flop_per_s=peaks)


def _described(fields: Mapping[str, Any]) -> Hardware:
    """Read a device from fields of :class:`Hardware`, or from columns of the table."""
    fields = named_fields(fields, HardwareError, "device")
    if "peak_flop_per_s" not in fields and any(
        column in fields for column in PEAK_COLUMNS.values()
    ):
        return _device(_record(fields))
    return Hardware(**fields)


@lru_cache(maxsize=1)
def _added() -> dict[str, Hardware]:
    """Devices that other distributions register."""
    found: dict[str, Hardware] = {}
    for fields in registered(GROUP):
        device = _described(fields)
        if device.slug in _text() or device.slug in found:
            raise CatalogError(
                "two devices are registered under one name", given=device.slug,
                fix=f"rename the one that the entry-point group {GROUP} adds",
            )  # fmt: skip
        found[device.slug] = device
    return found


@lru_cache
def _named(slug: str) -> Hardware:
    row = _text().get(slug)
    if row is not None:
        return _device(_record(row))
    added = _added()
    if slug in added:
        return added[slug]
    raise unknown("device", slug, [*_text(), *added], "lk.hardware()")


def load_hardware(ref: str | Mapping[str, Any] | Hardware) -> Hardware:
    """Load one device.

    Parameters
    ----------
    ref : str, mapping or Hardware
        A name of ``lk.hardware()``; or a description, either by the fields of ``Hardware`` or by
        the columns of the table. A ``Hardware`` is returned as it is.

    Returns
    -------
    Hardware
        Peaks are dense, in FLOP/s; rates are bytes/s in one direction.

    Raises
    ------
    CatalogError
        No device has this name; the error lists close ones.
    HardwareError
        The description is incomplete, has unknown fields or absurd values.

    Examples
    --------
    >>> device = load_hardware("h100-sxm-80gb")
    >>> device.memory_bytes, device.peaks["bf16"]
    (84942979072, 989400000000000.0)
    >>> load_hardware(
    ...     {
    ...         "slug": "mine",
    ...         "memory_bytes": 16 * 2**30,
    ...         "memory_bytes_per_s": 4e11,
    ...         "peak_flop_per_s": {"fp16": 8e13},
    ...     }
    ... )
    Hardware('mine')
    """
    if isinstance(ref, Hardware):
        return ref
    if isinstance(ref, str):
        return _named(normal_name(ref))
    if isinstance(ref, Mapping):
        return _described(ref)
    raise CatalogError(
        "a device is a name, a dict or a Hardware", given=ref,
        allowed="a name of lk.hardware(), a dict, lk.Hardware",
        fix="see lk.hardware() for the names",
    )  # fmt: skip


def hardware() -> pl.DataFrame:
    """List every device: the built-in ones, then those that other distributions register.

    Returns
    -------
    polars.DataFrame
        One row per device, columns as in ``COLUMNS``; empty peaks mean that the device lacks the
        dtype.

    Examples
    --------
    >>> hardware().filter(slug="t4-16gb").select("family", "memory_bytes", "fp16_flop_per_s").row(0)
    ('Turing', 16000000000, 65000000000000.0)
    """
    import polars as pl

    frame = pl.read_parquet(data_path("hardware.parquet"))
    added = [
        {
            **dict.fromkeys(COLUMNS),
            **{
                column: getattr(device, _RENAMED.get(column, column))
                for column in COLUMNS
                if _RENAMED.get(column, column) in _FIELDS
            },
            **{column: device.peaks.get(dtype) for dtype, column in PEAK_COLUMNS.items()},
        }
        for device in _added().values()
    ]
    return pl.concat([frame, pl.DataFrame(added, schema=frame.schema)]) if added else frame
