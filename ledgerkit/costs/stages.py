"""Pipeline stages: which device of a pipeline is the busiest, and what it holds.

A device works for its own stage only. The busiest one is on the stage that reads most weight bytes
in a step, the first of equals: that is the stage with most layers, unless layers differ (dense
layers before experts) or the head of a large vocabulary outweighs them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ledgerkit.costs.layout import at_entry, split_and_copies, stage_layers
from ledgerkit.costs.linear import served_bytes
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.model import LayerGroup, Model


@dataclass(frozen=True, slots=True)
class Stage:
    """Layers of one pipeline stage, and whether embedding and head are beside them."""

    layers: range
    is_first: bool
    is_last: bool

    def count(self, group: LayerGroup) -> int:
        """Layers of a group that are in this stage."""
        return sum(layer in self.layers for layer in group.layers)


def stages(model: Model, deployment: Deployment) -> tuple[Stage, ...]:
    """All stages of the pipeline, in order."""
    last = deployment.pp - 1
    return tuple(
        Stage(layers, is_first=index == 0, is_last=index == last)
        for index, layers in enumerate(stage_layers(model.num_hidden_layers, deployment.pp))
    )


def busiest_stage(model: Model, deployment: Deployment) -> Stage:
    """Stage whose device reads most weight bytes in a step."""
    groups = [
        (
            group,
            math.fsum(
                served_bytes(weight, deployment) * split_and_copies(weight, group, deployment)[0]
                for weight in group.weights
            ),
        )
        for group in model.groups
    ]
    entry, end = (
        math.fsum(
            served_bytes(weight, deployment) * split_and_copies(weight, None, deployment)[0]
            for weight in model.globals
            if weight.use != "lookup" and at_entry(weight) == first
        )
        for first in (True, False)
    )

    def read_bytes(stage: Stage) -> float:
        layers = math.fsum(size * stage.count(group) for group, size in groups)
        return layers + entry * stage.is_first + end * stage.is_last

    return max(stages(model, deployment), key=read_bytes)
