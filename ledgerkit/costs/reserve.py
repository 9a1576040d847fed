"""What an engine takes of a device besides weights and cache: an estimate with a band.

vLLM measures it: at start it runs a full batch and sets aside what that needed. In its logs this
is, almost to the percent, the sampler at work on one row of logits per seat::

    reserve = max_num_seqs · vocab_size · logit_bytes     sorting and sampling full rows
            + max_num_batched_tokens · hidden_size · 2    hidden states of one step
            + other_bytes (+ parallel_bytes)              driver and libraries, communication
            + repacking · bytes of mxfp4 experts          padded when they are loaded

The same for one and for two tensor-parallel ranks: logits are gathered, not split. The numbers
are those of the runs in ``data/vllm_memory.csv``, where the cache is exactly the fraction of memory
less weights and these; captured graphs live beside the fraction. For engines without such runs
the reserve is ``GENERAL``.
"""

from __future__ import annotations

from ledgerkit.costs.linear import served_bytes, served_dtype
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.efficiency import Band
from ledgerkit.spec.engine import EngineProfile
from ledgerkit.spec.model import Model

GENERAL = Band(low=1e9, mid=2e9, high=8e9)
"""Per device, by judgement: from a small model with few seats to a large one with a thousand."""
_HIDDEN_STATE_BYTES = 2


def reserve_bytes(model: Model, deployment: Deployment, profile: EngineProfile) -> Band:
    """Bytes of each device that the engine keeps for itself.

    Parameters
    ----------
    profile : EngineProfile
        As it is on the device, see ``EngineProfile.for_device``.

    Returns
    -------
    Band
        Bytes per device; ``GENERAL`` where the engine's own needs have not been measured.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> from ledgerkit.catalog.engines import load_engine
    >>> model, vllm = lk.load_model("llama-3.1-8b"), load_engine("vllm")
    >>> few = reserve_bytes(model, lk.Deployment(max_num_seqs=64), vllm)
    >>> many = reserve_bytes(model, lk.Deployment(), vllm)
    >>> round(few.mid / 1e9, 2), round(many.mid / 1e9, 2)
    (0.52, 5.24)
    """
    workspace = profile.workspace
    if workspace is None:
        return GENERAL
    logits = (deployment.max_num_seqs or profile.max_num_seqs) * model.vocab_size
    budget = deployment.max_num_batched_tokens or profile.max_num_batched_tokens
    states = budget * model.hidden_size * _HIDDEN_STATE_BYTES
    packed = _mxfp4_bytes(model, deployment) / deployment.devices

    def at(edge: str) -> float:
        found = (
            logits * getattr(workspace.logit_bytes, edge)
            + states
            + getattr(workspace.other_bytes, edge)
            + (getattr(workspace.parallel_bytes, edge) if deployment.devices > 1 else 0.0)
            + packed * getattr(workspace.mxfp4_repacking, edge)
        )
        return max(0.0, float(found))

    return Band(low=at("low"), mid=at("mid"), high=at("high"))


def _mxfp4_bytes(model: Model, deployment: Deployment) -> float:
    return float(sum(
        served_bytes(weight, deployment) * len(group.layers)
        for group in model.groups
        for weight in group.weights
        if served_dtype(weight, deployment) == "mxfp4"
    ))  # fmt: skip
