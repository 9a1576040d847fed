"""The base of every frozen, validated description."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ledgerkit.errors import LedgerError

Count = Annotated[int, Field(ge=0)]
Size = Annotated[int, Field(ge=1)]


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


def raise_from_validation(error: ValidationError, kind: type[LedgerError], noun: str) -> None:
    """Turn the first problem that pydantic found into a ``LedgerError`` that names the field."""
    problem = error.errors()[0]
    field = ".".join(str(part) for part in problem["loc"]) or noun
    if problem["type"] == "extra_forbidden":
        raise kind(f"{noun} has no field {field!r}", given=problem.get("input")) from None
    if problem["type"] == "missing":
        raise kind(f"{noun} needs the field {field!r}", fix=f"give {field}=") from None
    message = problem["msg"].removeprefix("Value error, ")
    raise kind(f"{noun}.{field}: {message}", given=_short(problem.get("input"))) from None


def _short(value: Any) -> Any:
    return value if not isinstance(value, dict) else f"a dict with {len(value)} keys"
