"""Turn names, paths and dicts into the objects that every verb works on."""

from __future__ import annotations

from typing import Any

from ledgerkit.catalog.efficiency import load_efficiencies
from ledgerkit.catalog.engines import load_engine
from ledgerkit.catalog.hardware import load_hardware
from ledgerkit.catalog.models import load_model
from ledgerkit.errors import DeploymentError
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.efficiency import Efficiencies
from ledgerkit.spec.engine import EngineProfile
from ledgerkit.spec.hardware import Hardware
from ledgerkit.spec.model import Model


def resolve(
    model: Model | str | dict[str, Any],
    hardware: Hardware | str | dict[str, Any],
    deployment: Deployment | dict[str, Any] | None,
) -> tuple[Model, Hardware, Deployment, EngineProfile, Efficiencies]:
    """Load whatever was given by name, and what belongs to it."""
    if not isinstance(model, Model):
        model = load_model(model)
    if not isinstance(hardware, Hardware):
        hardware = load_hardware(hardware)
    if deployment is None:
        deployment = Deployment()
    elif isinstance(deployment, dict):
        deployment = Deployment(**deployment)
    elif not isinstance(deployment, Deployment):
        raise DeploymentError("deployment must be a Deployment or a dict", given=deployment)
    profile = load_engine(deployment.engine).for_device(hardware)
    return model, hardware, deployment, profile, load_efficiencies(hardware)
