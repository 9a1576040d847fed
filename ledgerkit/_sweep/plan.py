"""Which points a sweep has, and how they are cut into units of work.

Points are numbered ``(setting · lines + line) · rows + row``: a setting is a combination of fields
that need a table of their own, a line a concurrency, a row a combination of the other fields. The
numbers, and the units, follow from the axes alone, so that runs can be resumed and shared.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ledgerkit._sweep.axes import ROW_FIELDS, TABLE_FIELDS, WORKLOAD_FIELDS, Axes, Group
from ledgerkit._sweep.prepared import Index, Prepared, Refused
from ledgerkit._sweep.values import Piece
from ledgerkit.spec.hardware import Hardware

if TYPE_CHECKING:
    from ledgerkit._calibration import Calibration

UNIT_POINTS = 262_144
"""Points of a unit of work: some 10 ms, and a few MB."""

BEYOND = "prompt_tokens + output_tokens is beyond the positions of the model"
CACHED = "cached_tokens must be below prompt_tokens"
QUEUED = "concurrency is above max_num_seqs"


class Lookup(Protocol):
    """Tables by setting."""

    def __getitem__(self, index: int) -> Prepared | Refused: ...


class Plan(Protocol):
    """Points by number."""

    points: int
    units: int
    pairs: int
    settings: int
    in_order: bool
    """Whether the pieces of a unit are in the order of the points."""
    calibration: Calibration | None
    """Constants of the user's own server."""

    def setting(self, index: int) -> Mapping[str, Any]:
        """Fields of one table."""

    def names(self, field: str) -> list[str]:
        """Slugs of the models or devices, each once."""

    def devices(self) -> list[Hardware]:
        """Devices, each once."""

    def content(self) -> Iterator[bytes]:
        """All that the points follow from."""

    def pieces(self, unit: int, tables: Lookup, dropped: Counter[str]) -> Iterator[Piece]:
        """Points of one unit, those that cannot be counted in ``dropped``."""

    def loose(self, ids: Index, tables: Lookup) -> Iterator[tuple[Index, Piece]]:
        """Points by number, with their positions in ``ids``."""


@dataclass(frozen=True, slots=True)
class Product:
    """Combinations of groups, the last one changing fastest."""

    groups: tuple[Group, ...]

    @property
    def size(self) -> int:
        """Number of combinations."""
        return math.prod(group.size for group in self.groups)

    def positions(self, numbers: Any) -> Iterator[tuple[Group, Any]]:
        """Position in each group of combinations by number."""
        for group in reversed(self.groups):
            numbers, at = np.divmod(numbers, group.size)
            yield group, at

    def take(self, numbers: Index) -> dict[str, Index]:
        """Columns of workload fields."""
        return {
            name: values[at]
            for group, at in self.positions(numbers)
            for name, values in group.columns.items()
        }


class GridPlan:
    """All combinations of the axes."""

    in_order = True

    def __init__(self, axes: Axes, calibration: Calibration | None = None) -> None:
        self.calibration = calibration
        tables, lines, rows = [], [], []
        for group in axes.groups:
            if group.fields & set(TABLE_FIELDS):
                tables.append(group)
            elif group.fields == {"concurrency"}:
                lines.append(group)
            else:
                rows.append(group)
        self.paired = any("concurrency" in group.columns for group in rows)
        fixed = {name for group in tables for name in group.fields if name in WORKLOAD_FIELDS}
        self._fixed = tuple(fixed)
        order = {name: i for i, name in enumerate((*TABLE_FIELDS, *WORKLOAD_FIELDS))}
        for groups in (tables, rows):
            groups.sort(key=lambda group: min(order[name] for name in group.fields))
        self._tables, self._lines, self._rows = (
            Product(tuple(groups)) for groups in (tables, lines, rows)
        )
        only_output = bool(rows) and rows[-1].fields == {"output_tokens"}
        self._outputs = rows[-1].size if only_output else 1
        self.settings, self.lines, self.rows = (
            self._tables.size, self._lines.size, self._rows.size,
        )  # fmt: skip
        self.pairs = self.rows // self._outputs
        self.points = self.settings * self.lines * self.rows
        self._row_blocks = math.ceil(self.rows / UNIT_POINTS)
        self._unit_lines = max(1, UNIT_POINTS // self.rows)
        all_lines = self.settings * self.lines
        self.units = math.ceil(all_lines / self._unit_lines) * self._row_blocks

    def setting(self, index: int) -> Mapping[str, Any]:
        """Fields of one table, with workload fields that change with them."""
        return {
            name: values[at]
            for group, at in self._tables.positions(index)
            for name, values in group.columns.items()
        }

    def names(self, field: str) -> list[str]:
        """Slugs of the models or devices, each once."""
        return list(dict.fromkeys(value.slug for value in self._values(field)))

    def devices(self) -> list[Hardware]:
        """Devices, each once."""
        return list({device.slug: device for device in self._values("hardware")}.values())

    def content(self) -> Iterator[bytes]:
        """All that the points follow from."""
        for group in (*self._tables.groups, *self._lines.groups, *self._rows.groups):
            for name, values in group.columns.items():
                yield name.encode()
                yield content_of(values)

    def _values(self, field: str) -> tuple[Any, ...]:
        found: tuple[Any, ...] = next(
            group.columns[field] for group in self._tables.groups if field in group.columns
        )
        return found

    def pieces(self, unit: int, tables: Lookup, dropped: Counter[str]) -> Iterator[Piece]:
        """Points of one unit, those that cannot be counted in ``dropped``."""
        which, block = divmod(unit, self._row_blocks)
        first = which * self._unit_lines
        last = min(first + self._unit_lines, self.settings * self.lines)
        rows = np.arange(
            block * UNIT_POINTS, min((block + 1) * UNIT_POINTS, self.rows), dtype=np.int64
        )
        columns = self._rows.take(rows)
        for setting in range(first // self.lines, (last - 1) // self.lines + 1):
            base = setting * self.lines
            lines = np.arange(max(first, base) - base, min(last, base + self.lines) - base)
            prepared = tables[setting]
            if isinstance(prepared, Refused):
                dropped[prepared.reason] += len(lines) * len(rows)
                continue
            yield from self._piece(setting, prepared, lines, rows, columns, dropped)

    def _piece(
        self, setting: int, prepared: Prepared, lines: Index, rows: Index,
        columns: Mapping[str, Index], dropped: Counter[str],
    ) -> Iterator[Piece]:  # fmt: skip
        values = dict(columns)
        if self._fixed:
            fixed = self.setting(setting)
            for name in self._fixed:
                length = 1 if name == "concurrency" and not self.paired else len(rows)
                values[name] = np.full(length, fixed[name], dtype=np.int64)
        if "concurrency" not in values:
            values["concurrency"] = self._lines.take(lines)["concurrency"]
        good_rows, reasons = usable_rows(prepared, values)
        for reason, count in reasons.items():
            dropped[reason] += count * len(lines)
        good = values["concurrency"] <= (prepared.most_sequences or np.inf)
        if self.paired:
            dropped[QUEUED] += int((good_rows & ~good).sum())
            good_rows &= good
        else:
            dropped[QUEUED] += int((~good).sum()) * int(good_rows.sum())
            lines, values["concurrency"] = lines[good], values["concurrency"][good]
        if not good_rows.any() or not len(lines):
            return
        rows = rows[good_rows]
        for name in (*ROW_FIELDS, *(("concurrency",) if self.paired else ())):
            values[name] = values[name][good_rows]
        pair = rows // self._outputs
        base = setting * self.lines

        def ids(at: Index) -> Index:
            line, row = np.divmod(at, len(rows))
            found: Index = (base + lines[line]) * self.rows + rows[row]
            return found

        yield Piece(
            setting=setting, concurrency=values["concurrency"],
            prompt_tokens=values["prompt_tokens"], cached_tokens=values["cached_tokens"],
            output_tokens=values["output_tokens"], paired=self.paired,
            first_pair=int(pair[0]), pair_of=pair - pair[0], ids=ids,
        )  # fmt: skip

    def loose(self, ids: Index, tables: Lookup) -> Iterator[tuple[Index, Piece]]:
        """Points by number, with their positions in ``ids``."""
        line, row = np.divmod(ids, self.rows)
        setting, line = np.divmod(line, self.lines)
        columns = self._rows.take(row)
        if "concurrency" not in columns and "concurrency" not in self._fixed:
            columns |= self._lines.take(line)
        for one in np.unique(setting):
            at = np.flatnonzero(setting == one)
            values = {name: column[at] for name, column in columns.items()}
            if self._fixed:
                fixed = self.setting(int(one))
                values |= {name: np.full(len(at), fixed[name]) for name in self._fixed}
            if not isinstance(tables[int(one)], Refused):
                yield at, Piece(
                    int(one), values["concurrency"], values["prompt_tokens"],
                    values["cached_tokens"], values["output_tokens"], paired=True,
                )  # fmt: skip


def usable_rows(prepared: Prepared, values: Mapping[str, Index]) -> tuple[Any, Counter[str]]:
    """Which rows the model can take, and how many cannot for which reason."""
    reasons: Counter[str] = Counter()
    cached = values["cached_tokens"] >= values["prompt_tokens"]
    beyond = values["prompt_tokens"] + values["output_tokens"] > prepared.longest
    if cached.any():
        reasons[CACHED] += int(cached.sum())
    beyond &= ~cached
    if beyond.any():
        reasons[BEYOND] += int(beyond.sum())
    return ~(cached | beyond), reasons


def content_of(values: Any) -> bytes:
    """Bytes that tell values of an axis apart."""
    if isinstance(values, np.ndarray):
        return values.tobytes()
    described = (
        value.model_dump_json() if hasattr(value, "model_dump_json") else repr(value)
        for value in values
    )
    return "\n".join(described).encode()
