"""Conditions of the user, checked before anything runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from ledgerkit._sweep.axes import FIELDS
from ledgerkit._sweep.columns import CATEGORIES, COLUMNS
from ledgerkit._sweep.task import Condition, codes
from ledgerkit.errors import SweepError

KNOWN = (*FIELDS, *COLUMNS)

_WHOLE_FRAME = {
    "Agg", "Window", "Over", "Rolling", "Sort", "SortBy", "Gather", "Slice", "Filter", "Explode",
    "AnonymousFunction", "Len", "Element",
}  # fmt: skip
"""Parts of an expression whose value depends on other rows, which a unit does not see."""


def check_names(names: Iterable[str], what: str) -> tuple[str, ...]:
    """Refuse names that are no columns of a sweep."""
    given = tuple(names)
    unknown = [name for name in given if not isinstance(name, str) or name not in KNOWN]
    if unknown:
        raise SweepError(f"{what} names columns that a sweep does not have",
                         given=", ".join(map(str, unknown)), allowed=", ".join(KNOWN))  # fmt: skip
    twice = [name for i, name in enumerate(given) if name in given[:i]]
    if twice:
        raise SweepError(f"{what} names a column twice", given=", ".join(twice))
    return given


def from_expression(expression: Any, what: str) -> Condition:
    """Check a polars expression: known columns, a truth value for each row on its own."""
    if not isinstance(expression, pl.Expr):
        raise SweepError(f"{what} needs a polars expression", given=expression,
                         fix="write for example pl.col('tpot_s') < 0.05")  # fmt: skip
    needs = check_names(dict.fromkeys(expression.meta.root_names()), what)
    nodes = set(_nodes(json.loads(expression.meta.serialize(format="json"))))
    if nodes & _WHOLE_FRAME:
        raise SweepError(
            f"{what} must judge each point on its own", given=", ".join(sorted(nodes & _WHOLE_FRAME)),
            fix="compare columns with numbers; aggregate after .collect()",
        )  # fmt: skip
    return Condition(needs, expression=expression)


def _nodes(tree: Any) -> Iterable[str]:
    """Names of the nodes of a serialized expression."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield key
            yield from _nodes(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _nodes(value)
    elif isinstance(tree, str):
        yield tree


def from_limits(limits: Any) -> tuple[Condition, ...]:
    """Turn ``subject_to`` into conditions: an expression, or limits by column."""
    if limits is None:
        return ()
    if not isinstance(limits, Mapping):
        return (from_expression(limits, "subject_to"),)
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
        raise SweepError(f"subject_to cannot tell which side of {name} is good", given=value,
                         fix=f"use an expression: pl.col({name!r}) <= {value!r}")  # fmt: skip
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124
        raise SweepError(f"the limit of {name} must be a number", given=value)
    if column.better == "low":
        return Condition((name,), column=name, most=float(value))
    return Condition((name,), column=name, least=float(value))


def direction(name: str, sense: Mapping[str, str] | None) -> tuple[str, bool]:
    """Objective and whether it is to be large."""
    given = (sense or {}).get(name)
    if given not in (None, "low", "high"):
        raise SweepError(f"the direction of {name} is low or high", given=given)
    column = COLUMNS.get(name)
    if column is not None and column.kind not in ("number", "whole"):
        raise SweepError(f"{name} is no number", fix="use it in where or subject_to")
    if column is None and name not in NUMERIC_FIELDS:
        raise SweepError(f"{name} is no number", fix="use it in by= or where")
    better = given or (column.better if column else None)
    if better is None:
        raise SweepError(f"it is not clear which side of {name} is good",
                         fix=f"add sense={{{name!r}: 'low'}} or 'high'")  # fmt: skip
    return name, better == "high"


NUMERIC_FIELDS = ("concurrency", "prompt_tokens", "cached_tokens", "output_tokens")
