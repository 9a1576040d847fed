"""Conditions of the user, checked before anything runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from ledgerkit._sweep.axes import FIELDS
from ledgerkit._sweep.columns import CATEGORIES, COLUMNS
from ledgerkit._sweep.frames import Frames
from ledgerkit._sweep.task import Condition, codes
from ledgerkit.errors import SweepError

KNOWN = (*FIELDS, *COLUMNS)

_PARTS = {
    "BinaryExpr": ("left", "right"),
    "Ternary": ("predicate", "truthy", "falsy"),
    "Cast": ("expr",),
}
"""Parts of an expression whose value in a row follows from that row, and their operands."""

_FUNCTIONS = {
    "Abs", "AllHorizontal", "AnyHorizontal", "Ceil", "Clip", "Coalesce", "Exp", "FillNull", "Floor",
    "IsBetween", "IsFinite", "IsIn", "IsInfinite", "IsNan", "IsNotNan", "IsNotNull", "IsNull",
    "Log", "Log1p", "MaxHorizontal", "MinHorizontal", "Negate", "Not", "Pow", "Replace",
    "ReplaceStrict", "Round", "RoundSF", "Sign", "StringExpr", "SumHorizontal",
}  # fmt: skip
"""Functions of which the same holds."""


def check_names(names: Iterable[Any], what: str) -> tuple[str, ...]:
    """Refuse names that are no columns of a sweep."""
    given = tuple(names)
    unknown = [name for name in given if not isinstance(name, str) or name not in KNOWN]
    if unknown:
        raise SweepError(f"{what} names columns that a sweep does not have",
                         given=", ".join(map(str, unknown)), allowed=", ".join(KNOWN))  # fmt: skip
    twice = [name for i, name in enumerate(given) if name in given[:i]]
    if twice:
        raise SweepError(
            f"{what} names a column twice", given=", ".join(twice), allowed="each column once"
        )
    return given


def from_expression(expression: Any, what: str, frames: Frames) -> Condition:
    """Check a polars expression: known columns, true or false for each row on its own."""
    if not isinstance(expression, pl.Expr):
        raise SweepError(
            f"{what} needs a polars expression",
            given=expression,
            allowed="a polars expression",
            fix="write for example pl.col('tpot_s') < 0.05",
        )
    needs = check_names(dict.fromkeys(expression.meta.root_names()), what)
    other = _not_by_row(json.loads(expression.meta.serialize(format="json")))
    if other:
        raise SweepError(
            f"{what} must judge each point on its own",
            given=other,
            allowed="expressions without aggregates and windows",
            fix="compare columns with numbers; aggregate after .collect()",
        )
    try:
        dtype = frames.empty(needs).select(expression.alias("mask")).dtypes[0]
    except pl.exceptions.PolarsError as error:
        raise SweepError(
            f"{what} cannot be computed: {error}",
            given=str(expression),
            allowed="expressions of the columns of this sweep",
        ) from error
    if dtype != pl.Boolean:
        raise SweepError(
            f"{what} must be true or false",
            given=str(dtype),
            allowed="an expression that is true or false",
            fix="compare with a number",
        )
    return Condition(needs, expression=expression)


def _not_by_row(node: Any) -> str | None:
    """Name the first part of a serialized expression that may look at other rows."""
    kind, body = next(iter(node.items())) if isinstance(node, dict) else (str(node), {})
    if kind == "Column":
        return None
    if kind == "Literal":
        return "Series" if "Series" in body else None
    if kind == "Alias":
        return _not_by_row(body[0])
    if kind == "Function":
        name = body["function"]
        while isinstance(name, dict):
            name, inner = next(iter(name.items()))
            name = inner if name == "Boolean" else name
        if name not in _FUNCTIONS:
            return str(name)
        return next(filter(None, map(_not_by_row, body["input"])), None)
    if kind not in _PARTS:
        return kind
    return next(filter(None, (_not_by_row(body[part]) for part in _PARTS[kind])), None)


def from_limits(limits: Any, frames: Frames) -> tuple[Condition, ...]:
    """Turn ``subject_to`` into conditions: an expression, or limits by column."""
    if limits is None:
        return ()
    if not isinstance(limits, Mapping):
        return (from_expression(limits, "subject_to", frames),)
    check_names(limits, "subject_to")
    return tuple(_limit(name, value) for name, value in limits.items())


def _limit(name: str, value: Any) -> Condition:
    column = COLUMNS.get(name)
    if column is not None and column.kind in CATEGORIES:
        wanted: Sequence[str] = (value,) if isinstance(value, str) else tuple(value)
        known = CATEGORIES[column.kind]
        unknown = [one for one in wanted if one not in known]
        if unknown or not wanted:
            raise SweepError(f"{name} has no such value", given=value, allowed=", ".join(known))
        return Condition((name,), column=name, among=codes(name, wanted))
    if column is None or column.better is None:
        raise SweepError(
            f"subject_to cannot tell which side of {name} is good",
            given=value,
            allowed="columns whose better side is known",
            fix=f"use an expression: pl.col({name!r}) <= {value!r}",
        )
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124
        raise SweepError(
            f"the limit of {name} must be a number", given=value, allowed="a finite number"
        )
    if column.better == "low":
        return Condition((name,), column=name, most=float(value))
    return Condition((name,), column=name, least=float(value))


def direction(name: str, sense: Mapping[str, str] | None) -> tuple[str, bool]:
    """Objective and whether it is to be large."""
    given = (sense or {}).get(name)
    if given not in (None, "low", "high"):
        raise SweepError(
            f"the direction of {name} is low or high", given=given, allowed="low, high"
        )
    column = COLUMNS.get(name)
    if column is not None and column.kind not in ("number", "whole"):
        raise SweepError(
            f"{name} is no number",
            allowed="columns of numbers",
            fix="use it in where or subject_to",
        )
    if column is None and name not in NUMERIC_FIELDS:
        raise SweepError(
            f"{name} is no number", allowed="columns of numbers", fix="use it in by= or where"
        )
    better = given or (column.better if column else None)
    if better is None:
        raise SweepError(
            f"it is not clear which side of {name} is good",
            allowed="columns whose better side is known",
            fix=f"add sense={{{name!r}: 'low'}} or 'high'",
        )
    return name, better == "high"


NUMERIC_FIELDS = ("concurrency", "prompt_tokens", "cached_tokens", "output_tokens")
