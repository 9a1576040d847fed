"""References to models and devices become objects."""

from __future__ import annotations

from typing import Any

from ledgerkit.catalog.hardware import load_hardware
from ledgerkit.catalog.models import load_model
from ledgerkit.spec.hardware import Hardware
from ledgerkit.spec.model import Model

__all__ = ["load_both"]


def load_both(model: Any, hardware: Any) -> tuple[Model | None, Hardware | None]:
    """Load what was given by name; None stays None."""
    if model is not None and not isinstance(model, Model):
        model = load_model(model)
    if hardware is not None and not isinstance(hardware, Hardware):
        hardware = load_hardware(hardware)
    return model, hardware
