"""``lk.transfer``: what a technique saves, and where it moves the bill."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from ledgerkit._techniques.double_entry import Transfer
from ledgerkit._techniques.point import Point
from ledgerkit._techniques.registry import step
from ledgerkit._techniques.sides import State
from ledgerkit._techniques.steps import Step
from ledgerkit.errors import TechniqueError
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.efficiency import Efficiencies
from ledgerkit.spec.hardware import Hardware
from ledgerkit.spec.model import Model

__all__ = ["transfer"]

Wanted = str | Mapping[str, Any]


def transfer(
    technique: Wanted | Iterable[Wanted],
    *,
    model: Model | str | dict[str, Any],
    hardware: Hardware | str | dict[str, Any],
    workload: Workload | dict[str, Any],
    deployment: Deployment | dict[str, Any] | None = None,
    action: Literal["apply", "remove"] = "apply",
    against: str | None = None,
    efficiencies: Efficiencies | None = None,
    **settings: Any,
) -> Transfer:
    """Book a technique twice: what it saves, and where it moves the cost.

    Parameters
    ----------
    technique : str, dict or a list of these
        An ``id`` of ``lk.techniques()``. A list is a stack, applied in order; a dict has
        ``technique``, and if wished ``action`` and settings of its own.
    model, hardware, deployment, workload
        As in ``lk.ledger``: the deployment before.
    action : {"apply", "remove"}
        Add the technique, or take it from a model or deployment that has it.
    against : str, optional
        What stands in for a removed technique, where there is a choice: MLA against ``mha``,
        ``gqa`` or ``mqa``; MoE against ``equal_active`` or ``equal_total``.
    efficiencies : Efficiencies, optional
        Default: those of the device.
    **settings
        Of the technique: column ``settings`` of ``lk.techniques()``.

    Returns
    -------
    Transfer

    Raises
    ------
    TechniqueError
        The model has the technique already, has none to remove, or cannot take it.
    LedgerError
        A name is unknown, or the deployment cannot be built.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> removed = lk.transfer(
    ...     "mla",
    ...     model="deepseek-v3",
    ...     hardware="h200-sxm-141gb",
    ...     deployment=lk.Deployment(tp=8),
    ...     workload=lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=32),
    ...     action="remove",
    ... )
    >>> removed.fits
    ('yes', 'no')
    >>> saved = removed.reversed()
    >>> saved.credits.filter(phase="hold", account="cache").height
    1
    """
    wanted = [technique] if isinstance(technique, str | Mapping) else technique
    if not isinstance(wanted, Iterable):
        raise TechniqueError("a technique is a name, a dict or a list of these", given=technique,
                             fix="see lk.techniques()")  # fmt: skip
    wanted = list(wanted)
    if not wanted:
        raise TechniqueError("a transfer needs a technique", given="none", allowed="1 or more",
                             fix="see lk.techniques()")  # fmt: skip
    if against is not None:
        settings["against"] = against
    if len(wanted) > 1 and settings:
        raise TechniqueError(
            "settings of a stack belong to its techniques", given=sorted(settings),
            fix="pass {'technique': 'mla', 'kv_lora_rank': 512} for each",
        )  # fmt: skip
    steps = tuple(_step(one, action, settings) for one in wanted)
    return Transfer(steps, State(Point.of(model, hardware, deployment, workload, efficiencies)))


def _step(wanted: Wanted, action: str, settings: Mapping[str, Any]) -> Step:
    if isinstance(wanted, str):
        return step(wanted, action, settings)
    own = dict(wanted)
    name = own.pop("technique", None)
    if not isinstance(name, str):
        raise TechniqueError("a technique in a stack needs a name", given=wanted,
                             fix="pass {'technique': 'mla', ...}")  # fmt: skip
    return step(name, own.pop("action", action), {**settings, **own})
