"""A frame of the user's own points as a plan."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ledgerkit._sweep import axes as fields
from ledgerkit._sweep.axes import FIELDS, REQUIRED, TABLE_FIELDS, WORKLOAD_FIELDS
from ledgerkit._sweep.plan import QUEUED, UNIT_POINTS, Lookup, content_of, usable_rows
from ledgerkit._sweep.prepared import Index, Refused
from ledgerkit._sweep.values import Piece
from ledgerkit.errors import SweepError
from ledgerkit.spec.hardware import Hardware

if TYPE_CHECKING:
    from ledgerkit._calibration import Calibration

_TEXT = ("weights", "experts", "kv_dtype", "activations", "engine", "model", "hardware")


class FramePlan:
    """Each row of a frame is a point."""

    in_order = False

    def __init__(self, frame: pl.DataFrame, calibration: Calibration | None = None) -> None:
        _check_columns(frame)
        self.calibration = calibration
        self.given = tuple(name for name in FIELDS if name in frame.columns)
        defaults = [
            pl.lit(fields.default(name)).alias(name) for name in FIELDS if name not in frame.columns
        ]
        frame = frame.with_columns(defaults)
        self._columns = {
            name: fields.integers(name, frame[name].to_numpy()) for name in WORKLOAD_FIELDS
        }
        tables = frame.select(TABLE_FIELDS)
        distinct = tables.unique(maintain_order=True).with_row_index("setting")
        joined = tables.join(
            distinct, on=TABLE_FIELDS, how="left", nulls_equal=True, maintain_order="left"
        )
        self._setting_of = joined["setting"].to_numpy().astype(np.int64)
        loaded = {
            name: {value: fields.table_value(name, value) for value in distinct[name].unique()}
            for name in TABLE_FIELDS
        }
        self._settings = [
            {name: loaded[name][row[name]] for name in TABLE_FIELDS}
            for row in distinct.drop("setting").iter_rows(named=True)
        ]
        self.settings = len(self._settings)
        self.points = self.pairs = frame.height
        self.units = math.ceil(frame.height / UNIT_POINTS)

    def setting(self, index: int) -> Mapping[str, Any]:
        """Fields of one table."""
        return self._settings[index]

    def names(self, field: str) -> list[str]:
        """Slugs of the models or devices, each once."""
        return list(dict.fromkeys(setting[field].slug for setting in self._settings))

    def devices(self) -> list[Hardware]:
        """Devices, each once."""
        found = (setting["hardware"] for setting in self._settings)
        return list({device.slug: device for device in found}.values())

    def content(self) -> Iterator[bytes]:
        """All that the points follow from."""
        yield self._setting_of.tobytes()
        for setting in self._settings:
            yield from (content_of([value]) for value in setting.values())
        for values in self._columns.values():
            yield content_of(values)

    def pieces(self, unit: int, tables: Lookup, dropped: Counter[str]) -> Iterator[Piece]:
        """Points of one unit, those that cannot be counted in ``dropped``."""
        numbers = np.arange(unit * UNIT_POINTS, min((unit + 1) * UNIT_POINTS, self.points))
        for at in self._by_setting(numbers):
            setting = int(self._setting_of[at[0]])
            prepared = tables[setting]
            if isinstance(prepared, Refused):
                dropped[prepared.reason] += len(at)
                continue
            values = {name: column[at] for name, column in self._columns.items()}
            good, reasons = usable_rows(prepared, values)
            dropped.update(reasons)
            queued = good & (values["concurrency"] > (prepared.most_sequences or np.inf))
            dropped[QUEUED] += int(queued.sum())
            good &= ~queued
            if good.any():
                yield self._piece(setting, at[good])

    def loose(self, ids: Index, tables: Lookup) -> Iterator[tuple[Index, Piece]]:
        """Points by number, with their positions in ``ids``."""
        for at in self._by_setting(ids, positions=True):
            setting = int(self._setting_of[ids[at[0]]])
            if not isinstance(tables[setting], Refused):
                yield at, self._piece(setting, ids[at])

    def _by_setting(self, numbers: Index, *, positions: bool = False) -> Iterator[Index]:
        """Points of one table after the other: numbers, or positions in ``numbers``."""
        settings = self._setting_of[numbers]
        order = np.argsort(settings, kind="stable")
        starts = np.flatnonzero(np.diff(settings[order], prepend=-1))
        for part in np.split(order, starts[1:]):
            yield part if positions else numbers[part]

    def _piece(self, setting: int, numbers: Index) -> Piece:
        values = {name: column[numbers] for name, column in self._columns.items()}
        return Piece(
            setting=setting, concurrency=values["concurrency"],
            prompt_tokens=values["prompt_tokens"], cached_tokens=values["cached_tokens"],
            output_tokens=values["output_tokens"], paired=True, ids=lambda at: numbers[at],
        )  # fmt: skip


def _check_columns(frame: pl.DataFrame) -> None:
    """Refuse unknown columns, missing ones, nulls and wrong types, by name."""
    unknown = sorted(set(frame.columns) - set(FIELDS))
    if unknown:
        raise SweepError("the frame has columns that are no fields of a point",
                         given=", ".join(unknown), allowed=", ".join(FIELDS),
                         fix=f"drop them: frame.drop({', '.join(map(repr, unknown))})")  # fmt: skip
    missing = [name for name in REQUIRED if name not in frame.columns]
    if missing:
        raise SweepError(
            "the frame lacks columns",
            given=", ".join(frame.columns),
            allowed="a frame with a column for each field",
            fix=f"add {', '.join(missing)}",
        )
    if frame.is_empty():
        raise SweepError("the frame has no rows", allowed="one row or more")
    for name in frame.columns:
        column = frame[name]
        may_be_missing = name in fields.DEPLOYMENT_FIELDS and fields.default(name) is None
        if column.null_count() and not may_be_missing:
            raise SweepError(
                f"the column {name!r} has nulls",
                given=f"{column.null_count()} of {len(column)}",
                allowed="columns without nulls",
                fix=f"drop them: frame.drop_nulls({name!r})",
            )
        dtype = column.dtype
        if dtype == pl.Null:
            continue
        if name in _TEXT:
            right = dtype in (pl.String, pl.Categorical, pl.Enum)
        else:
            right = dtype.is_integer() or (dtype.is_float() and name == "memory_fraction")
            right = right or (dtype.is_float() and name in WORKLOAD_FIELDS)
        if not right:
            raise SweepError(f"the column {name!r} has the wrong type", given=str(dtype),
                             allowed="text" if name in _TEXT else "whole numbers")  # fmt: skip
