"""Where a model is read: a machine, a layout and a workload, stated or chosen by a fixed rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledgerkit._ledger import Ledger, ledger
from ledgerkit.catalog.hardware import load_hardware
from ledgerkit.errors import DeploymentError, LedgerError
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.hardware import Hardware
from ledgerkit.spec.model import Model

DEVICE = "h200-sxm-141gb"
LAYOUTS = ((1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (8, 4))
"""(tp, pp), fewest devices first."""
PROMPT, OUTPUT, CONCURRENCY = 8192, 512, 8


@dataclass(frozen=True)
class ReadingPoint:
    """A model on a machine."""

    model: Model
    hardware: Hardware
    deployment: Deployment
    workload: Workload
    chosen: bool
    """True: the layout was chosen as the smallest that fits."""

    def books(self, **workload: int) -> Ledger:
        """Open the ledger here, or at another workload."""
        asked = Workload(**(self.workload.model_dump() | workload))
        return ledger(self.model, self.hardware, self.deployment, asked)


def default_workload(model: Model) -> Workload:
    """8,192 prompt and 512 output tokens, 8 sequences; shorter where the model is."""
    limit = model.max_position_embeddings
    output = min(OUTPUT, max(1, limit // 8))
    prompt = max(1, min(PROMPT, limit // 2))
    return Workload(prompt_tokens=prompt, output_tokens=output, concurrency=CONCURRENCY)


def reading_point(
    model: Model,
    hardware: Hardware | str | dict[str, Any] | None = None,
    deployment: Deployment | dict[str, Any] | None = None,
    workload: Workload | dict[str, Any] | None = None,
) -> ReadingPoint:
    """Choose what was not stated.

    Raises
    ------
    LedgerError
        What was stated cannot be built, or no layout of the rule can.
    """
    if not isinstance(hardware, Hardware):
        hardware = load_hardware(hardware or DEVICE)
    if isinstance(workload, Mapping):
        workload = Workload(**workload)
    workload = workload or default_workload(model)
    if isinstance(deployment, Mapping):
        deployment = Deployment(**deployment)
    if deployment is not None:
        ledger(model, hardware, deployment, workload)  # refuses what cannot be built
        return ReadingPoint(model, hardware, deployment, workload, chosen=False)
    return ReadingPoint(
        model, hardware, smallest_layout(model, hardware, workload), workload, chosen=True
    )


def smallest_layout(model: Model, hardware: Hardware, workload: Workload) -> Deployment:
    """Fewest devices that certainly hold the model; the most that can be built if none does."""
    last: Deployment | None = None
    refused: LedgerError | None = None
    for tp, pp in LAYOUTS:
        layout = Deployment(tp=tp, pp=pp)
        try:
            books = ledger(model, hardware, layout, workload)
        except LedgerError as error:
            refused = error
            continue
        last = layout
        if books.fits == "yes":
            return layout
    if last is None:
        raise refused or DeploymentError("no layout can be built", given=model.slug)
    return last
