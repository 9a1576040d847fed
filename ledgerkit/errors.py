"""Errors that say what was wrong, what was given, what is allowed and how to fix it."""

from __future__ import annotations

from typing import Any, ClassVar, Final

__all__ = [
    "NOT_GIVEN",
    "CapacityError",
    "CatalogError",
    "CheckpointError",
    "ConfigError",
    "DeploymentError",
    "FigureError",
    "HardwareError",
    "HubError",
    "LedgerError",
    "LoadTestError",
    "SimulationCancelledError",
    "SweepCancelledError",
    "SweepError",
    "TechniqueError",
    "UnsupportedArchitectureError",
    "UnsupportedDtypeError",
    "WorkloadError",
]


NOT_GIVEN: Final = object()
"""Stands for a value that is not shown."""


class LedgerError(ValueError):
    """Base of every error that ledgerkit raises on purpose.

    Parameters
    ----------
    what : str
        The field or thing that is wrong, and why, in one clause.
    given : object, optional
        The value that was given; shown with ``repr``, shortened when long. None is a value, too.
    allowed : str, optional
        What would be accepted.
    fix : str, optional
        The next thing to type or to do.

    Examples
    --------
    >>> print(LedgerError("tp must divide num_attention_heads", given=3, allowed="1, 2, 4, 8"))
    tp must divide num_attention_heads (given: 3; allowed: 1, 2, 4, 8)
    """

    _usually: ClassVar[tuple[str | None, str | None]] = (None, None)
    """What is allowed, and what to do, where the error itself does not say it."""

    def __init__(
        self, what: str, *, given: Any = NOT_GIVEN, allowed: str | None = None,
        fix: str | None = None,
    ) -> None:  # fmt: skip
        self.what = what
        self._shown = given is not NOT_GIVEN
        self.given = given if self._shown else None
        usually_allowed, usual_fix = self._usually
        self.allowed = allowed or usually_allowed
        self.fix = fix or usual_fix
        super().__init__(self._text())

    def _text(self) -> str:
        parts = []
        if self._shown:
            shown = _repr(self.given)
            parts.append("given: " + (shown if len(shown) <= 200 else shown[:197] + "..."))
        if self.allowed:
            parts.append(f"allowed: {self.allowed}")
        text = self.what + (f" ({'; '.join(parts)})" if parts else "")
        return text + (f". Fix: {self.fix}" if self.fix else "")

    def __reduce__(self) -> tuple[Any, ...]:
        given = (self.given,) if self._shown else ()
        return (_rebuild, (type(self), self.what, self.allowed, self.fix, *given))


def _rebuild(
    kind: type[LedgerError], what: str, allowed: str | None, fix: str | None, *given: Any
) -> LedgerError:
    if given:
        return kind(what, given=given[0], allowed=allowed, fix=fix)
    return kind(what, allowed=allowed, fix=fix)


def _repr(value: Any) -> str:
    """Show a value; an integer of thousands of digits, and what cannot show itself, by its type."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - an error about a value must not die of the value
        return f"a value of type {type(value).__name__}"


class ConfigError(LedgerError):
    """A model config that is missing a field, contradicts itself or holds absurd values."""

    _usually = ("a config as it is published with its model", "correct the config")


class UnsupportedArchitectureError(ConfigError):
    """A model type, or a field that shapes the architecture, that no reader knows."""

    _usually = ("what the reader of this model type knows", "take another model, or ask for it")


class CheckpointError(ConfigError):
    """A checkpoint file that is truncated, corrupt, hostile or at odds with its own config."""

    _usually = ("a whole file, as its tool writes it", "get the file again from where it came from")


class HubError(LedgerError):
    """A model hub that cannot be reached, refuses, or answers with something else."""

    _usually = ("models that the hub gives out", "check the id, the connection and HF_ENDPOINT")


class CatalogError(LedgerError):
    """A name that is in no catalogue (model, device, engine, technique)."""

    _usually = ("names that the catalogues list", "see lk.models(), lk.hardware(), lk.engines()")


class HardwareError(LedgerError):
    """A device description that is incomplete or contradicts itself."""

    _usually = ("what lk.Hardware documents", "correct the description of the device")


class UnsupportedDtypeError(LedgerError):
    """A dtype that this device, format or operation does not have."""

    _usually = ("formats that go with it", "use another format")


class DeploymentError(LedgerError):
    """A parallel layout or an engine setting that cannot be built for this model."""

    _usually = ("what this model and device can be", "use another deployment, device or model")


class WorkloadError(LedgerError):
    """A workload that makes no sense, or that the model cannot take."""

    _usually = ("what the model and the deployment take", "correct what is asked of them")


class CapacityError(LedgerError):
    """A question about memory that has no answer for this setup."""

    _usually = ("setups whose memory a source describes", "read ideal bytes: Model.cache_bytes")


class LoadTestError(LedgerError):
    """A load test that cannot be planned, run, read or judged."""

    _usually = ("what the functions of lk.loadtest document", "correct what was given")


class SweepError(LedgerError):
    """Axes, columns or a destination that a sweep cannot use."""

    _usually = ("what lk.sweep and its methods document", "correct or leave out what was given")


class SweepCancelledError(LedgerError):
    """A sweep that was cancelled; what it had found is in its ``partial``."""


class TechniqueError(LedgerError):
    """A technique that a model has already, lacks or cannot take, or a setting it lacks."""

    _usually = ("what lk.techniques() lists for such a model",
                "choose another technique, action or model")  # fmt: skip


class SimulationCancelledError(LedgerError):
    """A simulation that was cancelled."""


class FigureError(LedgerError):
    """A chart or a file that cannot be made from what was given."""

    _usually = ("what the chart functions document", "correct or leave out what was given")
