"""What users hand in becomes objects and numbers, or an error that says what is wrong."""

from __future__ import annotations

import math
from typing import Any

from ledgerkit.catalog.hardware import load_hardware
from ledgerkit.catalog.models import load_model
from ledgerkit.errors import LoadTestError
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.hardware import Hardware
from ledgerkit.spec.model import Model

__all__ = ["deployment_of", "load_both", "positive"]


def load_both(model: Any, hardware: Any) -> tuple[Model | None, Hardware | None]:
    """Load what was given by name; None stays None."""
    if model is not None and not isinstance(model, Model):
        model = load_model(model)
    if hardware is not None and not isinstance(hardware, Hardware):
        hardware = load_hardware(hardware)
    return model, hardware


def deployment_of(given: Any) -> Deployment | None:
    """A deployment, or its fields as a dict; None stays None.

    Raises
    ------
    LoadTestError
        It is neither.
    """
    if isinstance(given, dict):
        return Deployment(**given)
    if given is not None and not isinstance(given, Deployment):
        raise LoadTestError(
            "deployment must be a Deployment or a dict of its fields",
            given=given,
            allowed="a Deployment, or a dict of its fields",
            fix="lk.Deployment(tp=2)",
        )
    return given


def positive(name: str, given: Any) -> float:
    """A finite number above 0.

    Raises
    ------
    LoadTestError
        It is none.

    Examples
    --------
    >>> positive("seconds", 2)
    2.0
    """
    try:
        value = math.nan if isinstance(given, str | bool) else float(given)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not 0 < value < math.inf:
        raise LoadTestError(
            f"{name} must be a finite number above 0",
            given=given,
            allowed="a finite number above 0",
        )
    return value
