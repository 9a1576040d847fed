"""Axes of a sweep: the fields of a point, and the values that each takes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ledgerkit._refs import resolve
from ledgerkit.catalog.engines import load_engine
from ledgerkit.catalog.hardware import load_hardware
from ledgerkit.catalog.models import load_model
from ledgerkit.errors import SweepError
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.efficiency import Efficiencies
from ledgerkit.spec.engine import EngineProfile
from ledgerkit.spec.hardware import Hardware
from ledgerkit.spec.model import Model

__all__ = ["Axes", "Group", "ZippedAxes", "geomspace", "integers", "zip_axes"]

DEPLOYMENT_FIELDS = tuple(Deployment.model_fields)
TABLE_FIELDS = ("model", "hardware", *DEPLOYMENT_FIELDS)
"""Fields that need a cost table of their own."""
ROW_FIELDS = ("prompt_tokens", "cached_tokens", "output_tokens")
WORKLOAD_FIELDS = ("concurrency", *ROW_FIELDS)
FIELDS = (*TABLE_FIELDS, *WORKLOAD_FIELDS)
"""All fields of a point, in the order of the columns."""
REQUIRED = ("model", "hardware", "prompt_tokens", "output_tokens")

LONGEST_AXIS = 10_000_000
LARGEST_VALUE = 10**12

Integers = npt.NDArray[np.int64]
Resolved = tuple[Model, Hardware, Deployment, EngineProfile, Efficiencies]


@dataclass(frozen=True, slots=True)
class ZippedAxes:
    """Fields that change together; made by ``lk.zip_axes``."""

    values: Mapping[str, Any]


def zip_axes(**axes: Any) -> ZippedAxes:
    """Let fields change together, not in all combinations.

    Parameters
    ----------
    **axes : sequences of one length
        Fields of a point.

    Returns
    -------
    ZippedAxes
        To be given to ``lk.sweep`` before the other axes.

    Raises
    ------
    SweepError
        Lengths differ, or a field is given as a single value.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> layouts = lk.zip_axes(tp=[8, 1], dp_attention=[1, 8], ep=[1, 8])
    >>> sweep = lk.sweep(
    ...     layouts,
    ...     model="deepseek-v3",
    ...     hardware="h200-sxm-141gb",
    ...     prompt_tokens=8192,
    ...     output_tokens=512,
    ... )
    >>> sweep.points
    2
    """
    _check_names(axes)
    values = {name: _listed(name, value) for name, value in axes.items()}
    if not values:
        raise SweepError("zip_axes needs at least one field", allowed=", ".join(FIELDS))
    for name, value in axes.items():
        if _is_single(name, value):
            raise SweepError(
                f"zip_axes needs a sequence for {name!r}",
                given=value,
                allowed="a list, a range or an array",
            )
    lengths = {name: len(value) for name, value in values.items()}
    if len(set(lengths.values())) > 1:
        raise SweepError(
            "zipped axes must have one length", given=lengths, allowed="sequences of equal length"
        )
    return ZippedAxes(values)


def geomspace(start: Any, stop: Any, num: Any) -> tuple[int, ...]:
    """Whole numbers that grow by a constant factor, each once.

    Parameters
    ----------
    start, stop : int
        First and last value, at least 1.
    num : int
        How many; fewer are returned where neighbours round to the same number.

    Returns
    -------
    tuple of int

    Raises
    ------
    SweepError
        A value is below 1, or ``num`` below 2.

    Examples
    --------
    >>> geomspace(1, 64, 7)
    (1, 2, 4, 8, 16, 32, 64)
    """
    for name, value, least in (("start", start, 1), ("stop", stop, 1), ("num", num, 2)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise SweepError(
                f"geomspace needs a whole {name} of at least {least}",
                given=value,
                allowed="whole numbers",
            )
    if max(start, stop, num) > LARGEST_VALUE:
        raise SweepError("geomspace is out of range", given=(start, stop, num),
                         allowed=f"1 to {LARGEST_VALUE:,}")  # fmt: skip
    if num > LONGEST_AXIS:
        raise SweepError("geomspace is too long", given=num, allowed=f"up to {LONGEST_AXIS:,}")
    inner = (round(start * (stop / start) ** (i / (num - 1))) for i in range(num))
    return tuple(dict.fromkeys(inner))


@dataclass(frozen=True, slots=True)
class Group:
    """Fields that change together: as many columns, all of one length."""

    columns: Mapping[str, Any]
    """Field to values: an int64 array (workload) or a tuple (everything else)."""

    @property
    def size(self) -> int:
        """Number of settings."""
        return len(next(iter(self.columns.values())))

    @property
    def fields(self) -> frozenset[str]:
        """Names of the fields."""
        return frozenset(self.columns)


@dataclass(frozen=True, slots=True)
class Axes:
    """All groups of a sweep, every field once; fields that were not given have their default."""

    groups: tuple[Group, ...]
    given: tuple[str, ...]
    """Fields that the user gave, in the order of ``FIELDS``."""

    @classmethod
    def parse(cls, zipped: Sequence[ZippedAxes], axes: Mapping[str, Any]) -> Axes:
        """Check names and values.

        Raises
        ------
        SweepError
            A field is unknown, given twice, missing, empty or has a value twice.
        LedgerError
            A value is not one that the field can take.
        """
        _check_names(axes)
        groups: list[Group] = []
        seen: set[str] = set()
        for values in (*(z.values for z in zipped), *({k: v} for k, v in axes.items())):
            for name in values:
                if name in seen:
                    raise SweepError(f"the axis {name!r} is given twice", allowed="each axis once")
                seen.add(name)
            columns = {name: _checked(name, value) for name, value in values.items()}
            group = Group(columns)
            _check_distinct(group)
            groups.append(group)
        missing = [name for name in REQUIRED if name not in seen]
        if missing:
            raise SweepError(
                "a sweep needs more fields",
                given=sorted(seen),
                allowed="model, hardware and the fields of a workload",
                fix=f"give {', '.join(f'{name}=' for name in missing)}",
            )
        groups += [
            Group({name: _checked(name, default(name))}) for name in FIELDS if name not in seen
        ]
        return cls(tuple(groups), tuple(name for name in FIELDS if name in seen))


def default(name: str) -> Any:
    """Value of a field that was not given."""
    source = Workload if name in WORKLOAD_FIELDS else Deployment
    return source.model_fields[name].default


def _check_names(axes: Iterable[str]) -> None:
    unknown = sorted(set(axes) - set(FIELDS))
    if unknown:
        raise SweepError("a sweep has no such axis", given=", ".join(unknown),
                         allowed=", ".join(FIELDS))  # fmt: skip


def _is_single(name: str, value: Any) -> bool:
    if value is None or isinstance(value, str | bytes | int | float | bool | np.generic):
        return True
    return name in ("model", "hardware") and isinstance(value, Mapping | Model | Hardware)


def _listed(name: str, value: Any) -> Sequence[Any]:
    if _is_single(name, value):
        return [value]
    if isinstance(value, range):
        return value
    if hasattr(value, "to_numpy") and hasattr(value, "to_list"):  # a polars or pandas column
        return list(value.to_list())
    if isinstance(value, np.ndarray):
        if value.ndim != 1:
            raise SweepError(
                f"the axis {name!r} must have one dimension",
                given=value.shape,
                allowed="a list of values",
            )
        found: list[Any] = value.tolist()
        return found
    if isinstance(value, Mapping | set | frozenset) or not isinstance(value, Iterable):
        raise SweepError(f"the axis {name!r} needs a value or an ordered sequence", given=value,
                         allowed="a value, list, tuple, range, array or Series")  # fmt: skip
    if hasattr(value, "__fspath__"):
        return [value]
    return list(value)


def _checked(name: str, value: Any) -> Any:
    if hasattr(value, "__fspath__"):
        value = [value]
    values = _listed(name, value)
    if len(values) == 0:
        raise SweepError(
            f"the axis {name!r} is empty",
            allowed="one value or more",
            fix="give at least one value",
        )
    if len(values) > LONGEST_AXIS:
        raise SweepError(f"the axis {name!r} is too long", given=f"{len(values):,} values",
                         allowed=f"up to {LONGEST_AXIS:,}")  # fmt: skip
    if name in WORKLOAD_FIELDS:
        return integers(name, values)
    return tuple(table_value(name, one) for one in values)


def integers(name: str, values: Any) -> Integers:
    """Whole numbers of a workload field as an array.

    Raises
    ------
    SweepError
        A value is missing, no whole number, or out of range.
    """
    least = 0 if name == "cached_tokens" else 1
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):
        array = np.asarray([], dtype=object)
    if array.dtype.kind not in "iuf" or array.ndim != 1:
        bad = next((v for v in values if isinstance(v, bool) or not isinstance(v, int | float)),
                   values)  # fmt: skip
        raise SweepError(f"{name} needs whole numbers", given=bad, allowed="whole numbers")
    if array.dtype.kind == "f":
        whole = np.isfinite(array) & (array == np.floor(array))
        if not whole.all():
            raise SweepError(
                f"{name} needs whole numbers",
                given=float(array[~whole][0]),
                allowed="whole numbers",
            )
    wrong = (array < least) | (array > LARGEST_VALUE)
    if wrong.any():
        raise SweepError(f"{name} is out of range", given=array[wrong][0].item(),
                         allowed=f"{least} to {LARGEST_VALUE:,}")  # fmt: skip
    return np.ascontiguousarray(array, dtype=np.int64)


def table_value(name: str, value: Any) -> Any:
    """Check one value on its own; combinations are checked, and dropped, later."""
    if isinstance(value, float) and not math.isfinite(value):
        raise SweepError(f"{name} must be finite", given=value, allowed="finite numbers")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        raise SweepError(f"{name} cannot be a truth value", given=value, allowed="numbers")
    if name == "model":
        return value if isinstance(value, Model) else load_model(value)
    if name == "hardware":
        return value if isinstance(value, Hardware) else load_hardware(value)
    if name == "ep":
        return Deployment(tp=value, ep=value).ep
    checked = getattr(Deployment(**{name: value}), name)
    if name == "engine":
        load_engine(checked)
    return checked


def _check_distinct(group: Group) -> None:
    if len(group.columns) > 1:
        return
    for name, values in group.columns.items():
        if isinstance(values, np.ndarray):
            distinct, counts = np.unique(values, return_counts=True)
            if len(distinct) < len(values):
                raise SweepError(
                    f"the axis {name!r} has a value twice",
                    given=int(distinct[counts > 1][0]),
                    allowed="distinct values",
                )
            continue
        names = [value_name(value) for value in values]
        for i, one in enumerate(names):
            if one in names[:i]:
                raise SweepError(
                    f"the axis {name!r} has a value twice", given=one, allowed="distinct values",
                    fix="give each model and device a slug of its own: "
                    "model.model_copy(update={'slug': ...})" if name in ("model", "hardware")
                    else None,
                )  # fmt: skip


def value_name(value: Any) -> Any:
    """What stands in a column for a value."""
    return value.slug if isinstance(value, Model | Hardware) else value


def resolved(fields: Mapping[str, Any]) -> Resolved:
    """Everything that a cost table is built from.

    Raises
    ------
    DeploymentError
        The fields contradict each other.
    """
    deployment = Deployment(**{name: fields[name] for name in DEPLOYMENT_FIELDS})
    return resolve(fields["model"], fields["hardware"], deployment)
