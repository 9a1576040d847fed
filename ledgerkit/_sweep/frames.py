"""From arrays to polars frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from ledgerkit._sweep.axes import DEPLOYMENT_FIELDS, FIELDS, TABLE_FIELDS, value_name
from ledgerkit._sweep.columns import CATEGORIES, COLUMNS
from ledgerkit._sweep.plan import Plan
from ledgerkit._sweep.values import Values
from ledgerkit.spec.deployment import Deployment


class Frames:
    """Builds frames of one sweep, all with one schema."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._names = {name: pl.Enum(plan.names(name)) for name in ("model", "hardware")}

    def dtype(self, name: str) -> pl.DataType | type[pl.DataType]:
        """Type of a column."""
        if name in self._names:
            return self._names[name]
        if name in DEPLOYMENT_FIELDS:
            if name == "memory_fraction":
                return pl.Float64
            default = Deployment.model_fields[name].annotation
            return pl.String if default in (str, str | None) else pl.Int64
        if name in FIELDS:
            return pl.Int64
        column = COLUMNS[name]
        if column.kind in CATEGORIES:
            return pl.Enum(CATEGORIES[column.kind])
        return {"whole": pl.Int64, "text": pl.String}.get(column.kind, pl.Float64)

    def series(self, name: str, values: Values) -> pl.Series:
        """One column of one piece."""
        piece, dtype = values.piece, self.dtype(name)
        if name in TABLE_FIELDS:
            one = value_name(self.plan.setting(piece.setting)[name])
            return pl.Series(name, [one], dtype=dtype).new_from_index(0, piece.size)
        if name in FIELDS:
            return pl.Series(name, piece.axis(name))
        column = COLUMNS[name]
        if column.kind in CATEGORIES:
            categories = pl.Series(name, CATEGORIES[column.kind], dtype=dtype)
            return categories.gather(pl.Series(values.codes(name)))
        if column.kind == "text":
            return pl.Series(name, [values.text(name)], dtype=dtype).new_from_index(0, piece.size)
        series = pl.Series(name, values[name])
        if column.kind == "whole":
            return series.cast(dtype)
        return series.fill_nan(None) if column.nullable else series

    def frame(self, names: Sequence[str], pieces: Iterable[Values]) -> pl.DataFrame:
        """Columns of pieces, one below the other."""
        found = []
        for values in pieces:
            values.expect(names)
            found.append(pl.DataFrame([self.series(name, values) for name in names]))
        if not found:
            return self.empty(names)
        return pl.concat(found, rechunk=len(found) > 1)

    def empty(self, names: Sequence[str]) -> pl.DataFrame:
        """No rows, right types."""
        return pl.DataFrame(schema={name: self.dtype(name) for name in names})
