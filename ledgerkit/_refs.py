"""Turn names, paths and dicts into the objects that every verb works on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ledgerkit.catalog.efficiency import load_efficiencies
from ledgerkit.catalog.engines import load_engine
from ledgerkit.catalog.hardware import load_hardware
from ledgerkit.catalog.models import load_model
from ledgerkit.errors import DeploymentError, LedgerError, WorkloadError
from ledgerkit.spec._base import named_fields
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.efficiency import Efficiencies
from ledgerkit.spec.engine import EngineProfile
from ledgerkit.spec.hardware import Hardware
from ledgerkit.spec.model import Model

if TYPE_CHECKING:
    from ledgerkit._calibration import Calibration


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
    elif isinstance(deployment, Mapping):
        deployment = Deployment(**named_fields(deployment, DeploymentError, "deployment"))
    elif not isinstance(deployment, Deployment):
        raise DeploymentError("deployment must be a Deployment or a dict", given=deployment,
                              allowed="lk.Deployment, a dict of its fields, None",
                              fix="pass lk.Deployment(tp=...)")  # fmt: skip
    profile = load_engine(deployment.engine).for_device(hardware)
    return model, hardware, deployment, profile, load_efficiencies(hardware)


def as_workload(given: Workload | Mapping[str, Any] | None, who: str) -> Workload:
    """Take a workload or its fields; ``who`` needs it.

    Raises
    ------
    WorkloadError
        It is neither.
    """
    if isinstance(given, Mapping):
        return Workload(**named_fields(given, WorkloadError, "workload"))
    if not isinstance(given, Workload):
        raise WorkloadError(f"{who} needs a workload", given=given, allowed="Workload or dict",
                            fix="pass Workload(prompt_tokens=..., output_tokens=...)")  # fmt: skip
    return given


def as_calibration(given: Calibration | None) -> Calibration | None:
    """Take a calibration, or none.

    Raises
    ------
    LedgerError
        It is something else.
    """
    if given is None:
        return None
    from ledgerkit._calibration import Calibration

    if not isinstance(given, Calibration):
        raise LedgerError("calibration must be one that lk.calibrate made", given=given,
                          allowed="lk.Calibration or None",
                          fix="pass lk.calibrate(...) or Calibration.load(path)")  # fmt: skip
    return given
