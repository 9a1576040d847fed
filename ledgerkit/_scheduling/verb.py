"""``lk.scheduling``: one mechanism of the scheduling ledger, on one deployment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledgerkit._expressions import finite
from ledgerkit._ledger import Explanation, check_workload
from ledgerkit._refs import as_workload, resolve
from ledgerkit._scheduling.inputs import Inputs
from ledgerkit._scheduling.mechanisms import MECHANISMS, settings_of
from ledgerkit._scheduling.settings import checked
from ledgerkit.costs.scheduling import SchedulingEntry
from ledgerkit.costs.table import build
from ledgerkit.errors import CatalogError, DeploymentError, LedgerError
from ledgerkit.spec.deployment import Deployment, Workload

if TYPE_CHECKING:
    import polars as pl

    from ledgerkit.spec.hardware import Hardware
    from ledgerkit.spec.model import Model

__all__ = ["Mechanism", "scheduling"]


@dataclass(frozen=True)
class Mechanism:
    """What a scheduling mechanism saves (negative) and costs (positive), entry by entry.

    Made by ``lk.scheduling``.

    Attributes
    ----------
    name : str
    values : dict
        Figures that are not amounts: gain, speedup, break-even, crossover, shares.
    """

    name: str
    values: dict[str, Any]
    _entries: tuple[SchedulingEntry, ...]

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
            for key, value in self.values.items()
        )
        return f"Mechanism({self.name}: {shown or f'{len(self._entries)} entries'})"

    @property
    def entries(self) -> pl.DataFrame:
        """One row per entry.

        Columns: op, phase, ledger, account, verb, resource, amount, unit, per (batch, prompt,
        sequence, step, token or device), basis, expression, source.
        """
        import polars as pl

        names = ("op", "phase", "ledger", "account", "verb", "resource", "amount", "unit", "per",
                 "basis", "expression", "source")  # fmt: skip
        return pl.DataFrame(
            {name: [getattr(entry, name) for entry in self._entries] for name in names},
            schema={name: pl.Float64 if name == "amount" else pl.String for name in names},
        )

    def explain(self, op: str | None = None) -> tuple[Explanation, ...]:
        """Explain entries: expression, values and source of each.

        Parameters
        ----------
        op : str, optional
            Name in the ``op`` column; None = all.

        Raises
        ------
        LedgerError
            There is no such entry.
        """
        found = tuple(explained(entry) for entry in self._entries if op in (None, entry.op))
        if not found:
            raise LedgerError(
                f"{self.name} books no entry of this name", given=op,
                allowed=", ".join(entry.op for entry in self._entries) or None,
                fix="look at .entries",
            )  # fmt: skip
        return found


def explained(entry: SchedulingEntry) -> Explanation:
    """Turn an entry of a mechanism into its explanation."""
    return Explanation(
        label=f"{entry.phase} · {entry.ledger}.{entry.account} · {entry.op} · {entry.resource} "
        f"per {entry.per}",
        amount=entry.amount, unit=entry.unit, expression=entry.expression,
        values=finite(entry.values), basis=entry.basis, source=entry.source,
    )  # fmt: skip


def scheduling(
    mechanism: str,
    model: Model | str | dict[str, Any],
    hardware: Hardware | str | dict[str, Any],
    deployment: Deployment | dict[str, Any] | None = None,
    workload: Workload | dict[str, Any] | None = None,
    **settings: Any,
) -> Mechanism:
    """Book one scheduling mechanism in closed form.

    Parameters
    ----------
    mechanism : str
        ``continuous_batching`` (``lengths``, ``schedule_s``), ``paged_cache`` (``lengths``,
        ``max_model_len``), ``prefix_cache`` (``match_tokens``, ``block_size``,
        ``restore_bytes_per_s``), ``chunked_prefill`` (``chunk_tokens``), ``speculative_decoding``
        (``acceptance``, ``draft_tokens``, ``draft``: a model, or None for the MTP block),
        ``expert_balance`` (``skew``), ``node_limited_routing`` (``nodes``, ``node_limit``),
        ``expert_exchange`` (``kernels``, ``most_tokens``), ``graph_padding``, ``expert_offload``
        (``how``, ``link_bytes_per_s``, ``host_bytes_per_s``, ``host_flop_per_s``, ``sync_s``),
        ``disaggregation`` (``link_bytes_per_s``, ``hidden_share``), ``pipeline_bubble``
        (``micro_batches``) or ``agent_context`` (``tool_tokens``, ``policy``: "trim" or
        "summarise", ``steps``, ``keep``, ``stub_tokens``, ``every``, ``summary_tokens``).
    model, hardware, deployment, workload
        As in ``lk.ledger``. ``lengths`` of answers have the mean of the workload.
    **settings
        Of the mechanism.

    Returns
    -------
    Mechanism

    Raises
    ------
    LedgerError
        A name or a setting is unknown, a number is out of range, or the model has no such part.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> work = lk.Workload(prompt_tokens=1024, output_tokens=256, concurrency=32)
    >>> batching = lk.scheduling(
    ...     "continuous_batching", "llama-3.1-8b", "h100-sxm-80gb", workload=work
    ... )
    >>> idle = batching.explain("idle slots")[0]
    >>> abs(idle.evaluate() / idle.amount - 1) < 1e-12
    True
    """
    if mechanism not in tuple(MECHANISMS):  # what cannot be a key is refused, too
        raise CatalogError("no such scheduling mechanism", given=mechanism,
                           allowed=", ".join(MECHANISMS), fix="use one of these names")  # fmt: skip
    known = settings_of(mechanism)
    unknown = sorted(set(settings) - set(known))
    missing = [name for name, default in known.items() if default is ... and name not in settings]
    if unknown or missing:
        what = f"has no setting {unknown[0]!r}" if unknown else f"needs {missing[0]}="
        fix = f"leave {unknown[0]} out" if unknown else f"give {missing[0]}="
        raise DeploymentError(f"{mechanism} {what}", given=sorted(settings),
                              allowed=", ".join(known) or "no settings", fix=fix)  # fmt: skip
    settings = checked(settings, known)
    model, hardware, deployment, profile, efficiencies = resolve(model, hardware, deployment)
    workload = as_workload(workload, "a mechanism")
    check_workload(model, deployment, workload)
    table = build(model, deployment, hardware, efficiencies, profile)
    values, entries = MECHANISMS[mechanism](Inputs(table, workload), **settings)
    return Mechanism(mechanism, values, entries)
