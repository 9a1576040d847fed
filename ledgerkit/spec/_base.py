"""The base of every frozen, validated description."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

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

    @model_validator(mode="before")
    @classmethod
    def _neither_flags_nor_bytes(cls, given: Any) -> Any:
        """Refuse what pydantic would take: True as the number 1, bytes as text or a number."""
        if isinstance(given, dict):
            for name, value in given.items():
                flag = isinstance(value, bool) and name not in _flags(cls)
                if (flag or isinstance(value, bytes)) and name in cls.model_fields:
                    raise _NotOfField(name, value, _wanted(cls, name))
        return given


@cache
def _flags(kind: type[BaseModel]) -> frozenset[str]:
    """Fields that may be True or False."""
    return frozenset(
        name
        for name, field in kind.model_fields.items()
        if bool in (field.annotation, *get_args(field.annotation))
    )


def _wanted(kind: type[BaseModel], field: str) -> str:
    """Say in words what a field takes."""
    annotation = kind.model_fields[field].annotation
    kinds = (annotation, *(get_args(part)[0] if get_args(part) else part
                           for part in get_args(annotation)))  # fmt: skip
    words = {int: "a whole number", float: "a number", str: "text"}
    return next((said for python, said in words.items() if python in kinds), "another value")


class _NotOfField(ValueError):  # noqa: N818
    """A value that a field does not take, seen before pydantic looks."""

    def __init__(self, field: str, given: object, allowed: str) -> None:
        super().__init__(field)
        self.field, self.given, self.allowed = field, given, allowed


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
    if isinstance(told, _NotOfField):
        raise kind(
            f"{noun}.{told.field} must be {told.allowed}", given=told.given, allowed=told.allowed,
            fix=f"give {told.field}= {told.allowed}",
        ) from None  # fmt: skip
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
    if not problem["loc"]:
        raise _not_together(kind, noun, message, problem.get("input")) from None
    allowed = _allowed(problem["type"], limits)
    nested = len(problem["loc"]) > 1 or not allowed
    raise kind(
        f"{noun}.{field}: {message}", given=problem.get("input"),
        allowed=allowed or "what the field describes",
        fix=f"correct {field}" if nested else f"give {field}= {allowed}",
    ) from None  # fmt: skip


def _not_together(kind: type[LedgerError], noun: str, message: str, given: Any) -> LedgerError:
    """Error for fields that contradict each other: those that the message names."""
    named = {
        name: value
        for name, value in (given.items() if isinstance(given, dict) else ())
        if re.search(rf"\b{re.escape(str(name))}\b", message)
    }
    return kind(
        f"{noun}: {message}", given=named or _short(given), allowed="fields that go together",
        fix=f"correct {' or '.join(named)}" if named else f"correct the {noun}",
    )  # fmt: skip


def named_fields(given: Mapping[Any, Any], kind: type[LedgerError], noun: str) -> Mapping[str, Any]:
    """Refuse keys that cannot be names of fields.

    Examples
    --------
    >>> named_fields({"tp": 2}, LedgerError, "deployment")
    {'tp': 2}
    """
    strange = [name for name in given if not isinstance(name, str)]
    if strange:
        raise kind(f"names of the fields of a {noun} are text", given=strange[0],
                   allowed="names of fields", fix="correct this key")  # fmt: skip
    return given


def whole_number(
    kind: type[LedgerError], name: str, given: Any, least: int = 1, most: int = LARGEST
) -> int:
    """Take a whole number of any library, but no flag.

    Raises
    ------
    LedgerError
        Of the ``kind``; the message names the value.

    Examples
    --------
    >>> whole_number(LedgerError, "steps", 3)
    3
    """
    allowed = f"a whole number, at least {least}"
    if most < LARGEST:
        allowed += f" and at most {most:,}"
    try:
        found = operator.index(given)
    except TypeError:
        found = least - 1
    if isinstance(given, bool) or not least <= found <= most:
        raise kind(f"{name} must be a whole number from {least} on", given=given, allowed=allowed,
                   fix=f"give {name}= {allowed}")  # fmt: skip
    return found


def finite_number(
    kind: type[LedgerError], name: str, given: Any, least: float = 0.0, most: float = 1e24, *,
    above: bool = False,
) -> float:  # fmt: skip
    """Take a finite number of any library, ``above`` its least or from there on; no flag, no text.

    Raises
    ------
    LedgerError
        Of the ``kind``; the message names the value.

    Examples
    --------
    >>> finite_number(LedgerError, "share", 0.5, most=1.0)
    0.5
    """
    allowed = f"a number {'above' if above else 'from'} {least:g}{'' if above else ' on'}"
    if most < 1e24:
        allowed = f"a number {'above' if above else 'from'} {least:g} up to {most:g}"
    try:
        found = math.nan if isinstance(given, bool | str | bytes) else float(given)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not least <= found <= most or (above and found == least):
        raise kind(f"{name} must be {allowed}", given=given, allowed=allowed,
                   fix=f"give {name}= {allowed}")  # fmt: skip
    return found


def true_or_false(kind: type[LedgerError], name: str, given: Any) -> bool:
    """Take a flag, and nothing that only counts as one.

    Raises
    ------
    LedgerError
        Of the ``kind``; the message names the value.

    Examples
    --------
    >>> true_or_false(LedgerError, "unified", False)
    False
    """
    if not isinstance(given, bool):
        raise kind(f"{name} must be True or False", given=given, allowed="True, False",
                   fix=f"give {name}=True or {name}=False")  # fmt: skip
    return given


def at_least_one(kind: type[LedgerError], name: str, given: Any, allowed: str) -> list[Any]:
    """Take anything with items, but no text.

    Raises
    ------
    LedgerError
        Of the ``kind``; the message names the value.

    Examples
    --------
    >>> at_least_one(LedgerError, "models", ("llama-3.1-8b",), "models")
    ['llama-3.1-8b']
    """
    try:
        found = [] if isinstance(given, str | bytes) else list(given)
    except TypeError:
        found = []
    if not found:
        raise kind(f"{name} must be a list of at least one", given=given, allowed=allowed,
                   fix=f"pass {name}=[...]")  # fmt: skip
    return found


_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
_KINDS = {"int": "a whole number", "float": "a number", "finite": "a finite number",
          "string": "text", "bool": "true or false"}  # fmt: skip


def _allowed(problem: str, limits: dict[str, Any]) -> str | None:
    """Say in words what a field accepts."""
    for bound, words in _BOUNDS.items():
        if bound in limits:
            return f"{words} {limits[bound]}"
    if problem == "string_too_short":
        return f"text of at least {limits['min_length']} characters"
    if "min_length" in limits:
        return f"at least {limits['min_length']} of them"
    if "expected" in limits:
        return str(limits["expected"])
    return _KINDS.get(problem.partition("_")[0])


def _short(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return ", ".join(map(str, value)) or "nothing"
