"""The base of every frozen, validated description."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ledgerkit.errors import LedgerError

LARGEST = 2**53
"""Whole numbers up to here are exact in the arithmetic of the kernels."""
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Size = Annotated[int, Field(ge=1, le=LARGEST)]


class Frozen(BaseModel):
    """Immutable, hashable, closed to unknown fields, without NaN and infinity."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        protected_namespaces=(),
        strict=False,
    )


def raise_from_validation(
    error: ValidationError, kind: type[LedgerError], noun: str, names: Iterable[str] = ()
) -> None:
    """Turn the first problem that pydantic found into a ``LedgerError`` that names the field.

    ``names`` are the fields that exist, for the error about one that does not.
    """
    problem = error.errors()[0]
    limits = problem.get("ctx", {})
    told = limits.get("error")
    if isinstance(told, LedgerError):
        raise told from None
    field = ".".join(str(part) for part in problem["loc"]) or noun
    if problem["type"] == "extra_forbidden":
        raise kind(
            f"{noun} has no field {field!r}", given=_short(problem.get("input")),
            allowed=", ".join(names) or None, fix=f"leave {field} out or correct its name",
        ) from None  # fmt: skip
    if problem["type"] == "missing":
        raise kind(
            f"{noun} needs the field {field!r}", given=_short(problem.get("input")),
            allowed=", ".join(names) or None, fix=f"give {field}=",
        ) from None  # fmt: skip
    message = problem["msg"].removeprefix("Value error, ")
    allowed = _allowed(problem["type"], limits)
    raise kind(
        f"{noun}.{field}: {message}", given=_short(problem.get("input")), allowed=allowed,
        fix=f"give {field}= {allowed}" if allowed else f"correct {field}",
    ) from None  # fmt: skip


_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
_KINDS = {"int": "a whole number", "float": "a number", "finite": "a finite number",
          "string": "text", "bool": "true or false"}  # fmt: skip


def _allowed(problem: str, limits: dict[str, Any]) -> str | None:
    """Say in words what a field accepts."""
    for bound, words in _BOUNDS.items():
        if bound in limits:
            return f"{words} {limits[bound]}"
    if "min_length" in limits:
        return f"at least {limits['min_length']} of them"
    if "expected" in limits:
        return str(limits["expected"])
    return _KINDS.get(problem.partition("_")[0])


def _short(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return ", ".join(map(str, value)) or "nothing"
