"""What a technique works on: a model on a machine, in a deployment, at a workload."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ledgerkit._ledger import Ledger, check_workload, ledger
from ledgerkit._refs import resolve
from ledgerkit.costs.table import CostTable, build
from ledgerkit.errors import TechniqueError, WorkloadError
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.efficiency import Efficiencies
from ledgerkit.spec.hardware import Hardware
from ledgerkit.spec.model import Model

Change = Callable[..., "Point"]
"""(point, **settings) -> the point with the technique (or without it)."""


@dataclass(frozen=True, slots=True)
class Point:
    """One deployment at one workload."""

    model: Model
    hardware: Hardware
    deployment: Deployment
    workload: Workload
    efficiencies: Efficiencies | None = None
    """None = those of the device."""

    @classmethod
    def of(
        cls,
        model: Any,
        hardware: Any,
        deployment: Any,
        workload: Any,
        efficiencies: Efficiencies | None = None,
    ) -> Point:
        """Turn names, dicts and objects into a point."""
        found, device, layout, _, _ = resolve(model, hardware, deployment)
        if isinstance(workload, Mapping):
            workload = Workload(**workload)
        if not isinstance(workload, Workload):
            raise WorkloadError(
                "a transfer needs a workload", given=workload, allowed="Workload or dict",
                fix="pass Workload(prompt_tokens=..., output_tokens=...)",
            )  # fmt: skip
        return cls(found, device, layout, workload, efficiencies)

    def books(self) -> Ledger:
        """Open the ledger of this point."""
        if self.efficiencies is None:
            return ledger(self.model, self.hardware, self.deployment, self.workload)
        check_workload(self.model, self.deployment, self.workload)
        return Ledger(self.table(), self.workload)

    def table(self) -> CostTable:
        """Cost table of this point's deployment."""
        model, hardware, deployment, profile, known = resolve(
            self.model, self.hardware, self.deployment
        )
        return build(model, deployment, hardware, self.efficiencies or known, profile)

    def with_model(self, model: Model) -> Point:
        """The same deployment of another model."""
        return replace(self, model=model)

    def with_deployment(self, **fields: Any) -> Point:
        """The same model in another deployment."""
        return replace(self, deployment=Deployment(**(self.deployment.model_dump() | fields)))

    def with_workload(self, **fields: Any) -> Point:
        """The same deployment at another workload."""
        return replace(self, workload=Workload(**(self.workload.model_dump() | fields)))

    def with_hardware(self, **fields: Any) -> Point:
        """The same deployment on a device that differs in some fields."""
        own = {name: getattr(self.hardware, name) for name in Hardware.model_fields}
        return replace(self, hardware=Hardware(**(own | fields)))


def settings_of(change: Callable[..., Any]) -> dict[str, Any]:
    """Names and defaults of the settings that a technique takes.

    Examples
    --------
    >>> def change(point, *, window=1024): ...
    >>> settings_of(change)
    {'window': 1024}
    """
    parameters = inspect.signature(change).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def checked_settings(name: str, change: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Refuse settings that a technique does not have."""
    known = settings_of(change)
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise TechniqueError(
            f"{name} has no setting {unknown[0]!r}", given=unknown,
            allowed=", ".join(known) or "none", fix="leave it out or correct its name",
        )  # fmt: skip


def whole(name: str, value: Any, least: int = 1) -> int:
    """Check a setting that counts something."""
    if type(value) is not int or value < least:
        raise TechniqueError(f"{name} must be a whole number", given=value,
                             allowed=f"{least} or more", fix=f"give {name}={least}")  # fmt: skip
    return value
