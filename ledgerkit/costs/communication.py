r"""Communication: all-reduce of tensor parallelism, exchange of experts, sends between stages.

With N ranks and M bytes a message (link rate β, measured fraction η):

* all-reduce :math:`t = α + \min((N-1) M / βη,\; α_2 + 2 (N-1)/N · M / βη)`: one shot or two, after
  attention and after the FFN of every layer, whenever ``tp > 1``;
* exchange under attention data parallelism: tokens go to the ranks of their experts and come back,
  :math:`t = α + α_2 + \min(T R d · 3\,B,\; 2 (N-1)/N · T_m d · 2\,B) / βη`, fp8 out and bf16 back;
  R is the expected number of distinct ranks;
* send to the next pipeline stage: the hidden state.

Beyond the scale-up domain the rate is the network card's, and latencies are four times as long. A
prefill step then sends one copy of a token to each other node, and the scale-up links forward it;
the few tokens of a decode step go to their ranks directly.

Source: vLLM custom all-reduce (one-shot and two-shot), DeepEP (dispatch fp8, combine bf16, distinct
ranks). Worked: 256 experts, 8 per token, 8 ranks: R = 5.29.
"""

from __future__ import annotations

import math

from ledgerkit.costs.operations import Link
from ledgerkit.costs.stages import Stage
from ledgerkit.errors import HardwareError
from ledgerkit.kernels import columns as c
from ledgerkit.spec.attention import NoAttention, StateAttention
from ledgerkit.spec.axes import Account
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.feed_forward import MoeFfn, NoFfn
from ledgerkit.spec.hardware import Hardware
from ledgerkit.spec.model import Model

CROSS_NODE_LATENCY = 4.0
_PCIE_DOMAIN = 8
_HIDDEN_BYTES = 2.0
_DISPATCH_AND_COMBINE_BYTES = 1.0 + 2.0


def distinct_ranks(ranks: int, experts: int, per_token: int) -> float:
    """Expected ranks that hold at least one of a token's experts.

    Examples
    --------
    >>> round(distinct_ranks(8, 256, 8), 2), round(distinct_ranks(64, 256, 8), 2)
    (5.29, 7.68)
    """
    kept = experts - experts // ranks
    missed = math.comb(kept, per_token) / math.comb(experts, per_token)
    return ranks * (1.0 - missed)


def wire(ranks: int, hardware: Hardware) -> tuple[str, float, float]:
    """Return (link name, bytes/s one way, latency factor) of a group of this many devices."""
    domain = hardware.scaleup_domain_size or _PCIE_DOMAIN
    if ranks > domain:
        if hardware.nic_bytes_per_s is None:
            raise HardwareError(
                f"{ranks} devices span more than one domain of {domain} {hardware.slug}, and its "
                "network rate is unknown",
                given=ranks, allowed=f"up to {domain}",
                fix="give nic_bytes_per_s, or use fewer devices",
            )  # fmt: skip
        return "scale-out", hardware.nic_bytes_per_s, CROSS_NODE_LATENCY
    if hardware.scaleup_bytes_per_s is not None:
        return "scale-up", hardware.scaleup_bytes_per_s, 1.0
    if hardware.pcie_bytes_per_s is not None:
        return "pcie", hardware.pcie_bytes_per_s, 1.0
    raise HardwareError(f"{hardware.slug} has no link to other devices", given=ranks, allowed="1",
                        fix="give scaleup_bytes_per_s or pcie_bytes_per_s")  # fmt: skip


def links(model: Model, deployment: Deployment, hardware: Hardware, stage: Stage) -> list[Link]:
    """All communication of one step, as counts of equal messages: in all layers, in the stage."""
    found: list[Link] = []
    tp, dp, pp = deployment.tp, deployment.dp_attention, deployment.pp
    hidden = model.hidden_size * _HIDDEN_BYTES
    group_size = tp * dp
    reduces = (0, 0)
    exchanges: dict[tuple[float, float], tuple[int, int]] = {}
    for group in model.groups:
        layers = (group.count, stage.count(group))
        if not isinstance(group.attention, NoAttention):
            reduces = _both(reduces, layers)
        if isinstance(group.ffn, MoeFfn) and dp > 1:
            ffn = group.ffn
            shards = deployment.expert_shards
            ranks = distinct_ranks(deployment.ep, ffn.num_experts, ffn.num_experts_per_tok)
            if deployment.ep == 1:
                ranks = 1.0
            width = (ffn.expert_hidden_size or model.hidden_size) * _DISPATCH_AND_COMBINE_BYTES
            message = ranks * shards * width / tp
            once = _node_copies(group_size, hardware, ffn) / (ranks * shards)
            key = (message, once)
            exchanges[key] = _both(exchanges.get(key, (0, 0)), layers)
        elif not isinstance(group.ffn, NoFfn):
            reduces = _both(reduces, layers)

    def link(
        name: str, account: Account, kind: int, counts: tuple[int, int], ranks: int,
        message: float, gather: float = 0.0, *, span: int | None = None, prefill: float = 1.0,
    ) -> Link:  # fmt: skip
        wire_name, rate, factor = wire(span or ranks, hardware)
        return Link(
            name=name, account=account, kind=kind, link=wire_name, count=float(counts[0]),
            stage_count=float(counts[1]), ranks=ranks, token_bytes=message, gather_bytes=gather,
            bytes_per_s=rate, latency_factor=factor, prefill_share=prefill,
            source="one-shot or two-shot all-reduce" if kind == c.KIND_ALL_REDUCE
            else "dispatch fp8, combine bf16, to the distinct ranks"
            if kind == c.KIND_EXCHANGE else "hidden state to the next stage",
        )  # fmt: skip

    if tp > 1:
        found.append(link("all_reduce", "tp", c.KIND_ALL_REDUCE, reduces, tp, hidden))
        found += [
            link("scan_all_reduce", "tp", c.KIND_ALL_REDUCE, counts, tp, message)
            for message, counts in _scan_messages(model, stage).items()
        ]
    for (message, once), counts in exchanges.items():
        gather = 2.0 * (group_size - 1) / group_size * hidden
        found.append(
            link("expert_exchange", "ep", c.KIND_EXCHANGE, counts, group_size, message, gather,
                 prefill=min(1.0, once))
        )  # fmt: skip
    if pp > 1:
        sends = (pp - 1, 1)
        found.append(
            link("stage_send", "pp", c.KIND_SEND, sends, 2, hidden, span=deployment.devices)
        )
    return found


def _scan_messages(model: Model, stage: Stage) -> dict[float, tuple[int, int]]:
    """Bytes per token that Mamba-1 layers sum over the ranks before their scan, and how many do.

    Channels are divided, while time step, B and C come from all of them (``MambaMixer`` of vLLM:
    ``x_proj`` is row-parallel). Mamba-2 has them from the layer's input, by the rank's own rows.
    """
    found: dict[float, tuple[int, int]] = {}
    for group in model.groups:
        attention = group.attention
        if isinstance(attention, StateAttention) and attention.scan_inputs:
            message = float(attention.scan_inputs * _HIDDEN_BYTES)
            layers = (group.count, stage.count(group))
            found[message] = _both(found.get(message, (0, 0)), layers)
    return found


def _node_copies(ranks: int, hardware: Hardware, ffn: MoeFfn) -> float:
    """Copies of a token that leave its node in prefill; infinite inside one domain."""
    domain = hardware.scaleup_domain_size or _PCIE_DOMAIN
    if ranks <= domain:
        return math.inf
    nodes = math.ceil(ranks / domain)
    reached = distinct_ranks(nodes, ffn.num_experts, ffn.num_experts_per_tok)
    return reached * (nodes - 1) / nodes


def _both(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return one[0] + other[0], one[1] + other[1]
