"""Linear layers, norms and biases: everything whose cost follows from the weight rows.

A weight is read once per step, whatever the number of tokens, and multiplies each token:
``2 · elements`` FLOP. Norms, biases and buffers are read and cost no FLOP worth a line. One
operation per (account, dtype class, use), so that an fp8 projection and its bf16 output
projection are priced on their own peaks.

Source: costmodel arithmetic, 1 MAC = 2 FLOP. Worked: the MLA projections of DeepSeek-V3 have
187,107,328 elements per layer (two norms included), 0.374 GFLOP per token.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ledgerkit.costs.layout import at_entry, split_and_copies
from ledgerkit.costs.operations import Operation, Share, Work
from ledgerkit.kernels import columns as c
from ledgerkit.spec.attention import LatentAttention
from ledgerkit.spec.axes import Account, Ledger
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.efficiency import OpClass
from ledgerkit.spec.feed_forward import MoeFfn
from ledgerkit.spec.hardware import Hardware
from ledgerkit.spec.model import LayerGroup, Model
from ledgerkit.spec.precision import kept_as, storage
from ledgerkit.spec.weights import Weight

_RETYPED: frozenset[Account] = frozenset(
    {"projections", "dense", "routed_experts", "shared_experts"}
)
_EXPERT_ACCOUNTS: frozenset[Account] = frozenset({"routed_experts", "shared_experts"})
_MULTIPLIED = ("linear", "expand", "head")
_MATRIX = 2
SOURCE = "2 FLOP per element and token; stored bytes read once per step"


def served_dtype(weight: Weight, deployment: Deployment) -> str:
    """Storage format in which the deployment keeps a weight.

    ``weights=`` re-types the matrices of projections, dense FFN and experts, never embeddings,
    head, norms or router; ``experts=`` overrides it for experts. Of the types of ggml, rows that
    are no whole number of blocks get a simpler one, as in llama.cpp.

    Raises
    ------
    UnsupportedDtypeError
        The rows do not go with the format.
    """
    if (
        weight.account not in _RETYPED
        or weight.use not in ("linear", "expand")
        or len(weight.shape) < _MATRIX
    ):
        return weight.dtype
    field, wanted = "weights", deployment.weights
    if weight.account in _EXPERT_ACCOUNTS and deployment.experts is not None:
        field, wanted = "experts", deployment.experts
    return weight.dtype if wanted is None else kept_as(field, wanted, weight.shape[-1])


def served_bytes(weight: Weight, deployment: Deployment) -> float:
    """Bytes of all copies of a weight as it is served, scales included."""
    return storage(served_dtype(weight, deployment)).bytes(weight.shape) * weight.copies


def compute_dtype(name: str, hardware: Hardware) -> str:
    """Dtype in which a device multiplies weights of this storage format.

    MXFP4 weights meet fp8 activations where the device has fp4 units, and are expanded to bf16
    where it has none.
    """
    wanted = storage(name).compute
    if name == "mxfp4":
        wanted = "fp8" if "fp4" in hardware.peaks else "bf16"
    return hardware.compute_dtype(wanted)


def expanded_formats(
    model: Model, deployment: Deployment, hardware: Hardware
) -> dict[str, tuple[str, str]]:
    """Storage formats whose own dtype the device lacks: (that dtype, the one it multiplies in)."""
    found: dict[str, tuple[str, str]] = {}
    for weight, _ in model.booked_weights():
        if weight.use in _MULTIPLIED:
            name = served_dtype(weight, deployment)
            wanted = storage(name).compute
            if wanted not in hardware.peaks:
                found[name] = (wanted, compute_dtype(name, hardware))
    return found


def simpler_formats(model: Model, deployment: Deployment) -> dict[str, tuple[int, ...]]:
    """Formats that nobody asked for, with the rows that llama.cpp keeps in them."""
    asked = {deployment.weights, deployment.experts}
    found: dict[str, set[int]] = {}
    for weight, _ in model.booked_weights():
        name = served_dtype(weight, deployment)
        if name != weight.dtype and name not in asked:
            found.setdefault(name, set()).add(weight.shape[-1])
    return {name: tuple(sorted(rows)) for name, rows in found.items()}


@dataclass(frozen=True, slots=True)
class _Bucket:
    """Weights that become one operation."""

    ledger: Ledger
    account: Account
    scope: str
    dtype: str


def layer_operations(
    group: LayerGroup, deployment: Deployment, hardware: Hardware
) -> list[Operation]:
    """Operations that follow from the weight rows of equal layers."""
    return _operations(group.weights, group, group.count, deployment, hardware)


def global_operations(model: Model, deployment: Deployment, hardware: Hardware) -> list[Operation]:
    """Operations that follow from the weight rows outside the layers."""
    entry = tuple(weight for weight in model.globals if at_entry(weight))
    end = tuple(weight for weight in model.globals if not at_entry(weight))
    return [
        *(
            replace(operation, at_entry=True)
            for operation in _operations(entry, None, 1, deployment, hardware)
        ),
        *_operations(end, None, 1, deployment, hardware),
    ]


def _operations(
    weights: tuple[Weight, ...],
    group: LayerGroup | None,
    count: int,
    deployment: Deployment,
    hardware: Hardware,
) -> list[Operation]:
    buckets: dict[_Bucket, tuple[Share, Share]] = {}
    for weight in weights:
        if weight.use == "lookup":
            scope, dtype = "lookup", "bf16"
        else:
            dtype = compute_dtype(served_dtype(weight, deployment), hardware)
            scope = _scope(weight)
        key = _Bucket(weight.ledger, weight.account, scope, dtype)
        if weight.use in ("vector", "buffer") and not weight.routed:
            key = _beside(buckets, key)
        prefill, decode = _shares(weight, group, deployment)
        if key in buckets:
            old_prefill, old_decode = buckets[key]
            prefill, decode = old_prefill + prefill, old_decode + decode
        buckets[key] = (prefill, decode)
    return [
        Operation(
            name=_NAMES.get(key.scope, key.account),
            ledger=key.ledger,
            compute_account=key.account,
            byte_account=key.account,
            count=count,
            prefill=prefill,
            decode=decode,
            prefill_class=(_op_class(key), key.dtype),
            decode_class=(_op_class(key), key.dtype),
            source=SOURCE,
            basis="estimated" if key.scope == "routed" else "exact",
        )
        for key, (prefill, decode) in buckets.items()
    ]


_NAMES = {"expand": "latent_expansion", "lookup": "embedding", "head": "lm_head"}


def _scope(weight: Weight) -> str:
    if weight.routed:
        return "routed"
    if weight.use in ("expand", "head"):
        return weight.use
    return "linear"


def _op_class(key: _Bucket) -> OpClass:
    if key.scope == "routed":
        return "grouped_gemm"
    return "elementwise" if key.scope == "lookup" or key.account == "norms" else "gemm"


def _beside(buckets: dict[_Bucket, tuple[Share, Share]], key: _Bucket) -> _Bucket:
    """Put a bias or norm into the matrix operation of its account, if there is one."""
    for other in buckets:
        if (other.ledger, other.account, other.scope) == (key.ledger, key.account, "linear"):
            return other
    return key


def _attends_to_latents(group: LayerGroup | None) -> bool:
    """Tell whether prefill, too, works on latents: those that an indexer chose for each query."""
    attention = group.attention if group is not None else None
    return isinstance(attention, LatentAttention) and attention.indexer is not None


def _shares(
    weight: Weight, group: LayerGroup | None, deployment: Deployment
) -> tuple[Share, Share]:
    """Prefill and decode shares of one weight."""
    fraction, tp_copies = split_and_copies(weight, group, deployment)
    dp_copies = 1.0 if weight.split == "experts" else float(deployment.dp_attention)
    size = served_bytes(weight, deployment)
    elements = weight.elements if weight.use in _MULTIPLIED else 0
    if weight.routed:
        ffn = group.ffn if group is not None else None
        if not isinstance(ffn, MoeFfn):
            msg = f"{weight.name} is routed, but its layer has no experts"
            raise TypeError(msg)
        per_token = 2.0 * elements / ffn.num_experts * ffn.num_experts_per_tok * fraction
        work = Work(
            scope=c.SCOPE_EXPERTS,
            flop_per_token=per_token,
            read_per_expert=size / ffn.num_experts / deployment.expert_shards,
            experts=ffn.num_experts / deployment.ep,
            miss=1.0 - ffn.num_experts_per_tok / ffn.num_experts,
        )
        share = Share.same(work)
        return share, share
    if weight.use == "lookup":
        # every tensor-parallel rank looks up its own rows, or all of them in a table of its own
        row = size / weight.shape[0] * fraction
        share = Share.replicated(Work(read_per_token=row), tp_copies)
        return share, share

    def share_in(scope: int) -> Share:
        flop, read = 2.0 * elements * fraction, size * fraction
        return Share(
            Work(scope=scope, flop_per_token=flop, read_per_step=read),
            Work(scope=scope, flop_per_token=flop / tp_copies, read_per_step=read / tp_copies),
            Work(
                scope=scope,
                flop_per_token=flop / tp_copies,
                read_per_step=read / tp_copies / dp_copies,
            ),
        )

    if weight.use == "expand" and not _attends_to_latents(group):
        # decode folds the matrix into query and output; prefill expands every visible latent
        return share_in(c.SCOPE_CONTEXT), share_in(c.SCOPE_RANK)
    share = share_in(c.SCOPE_SAMPLED if weight.use == "head" else c.SCOPE_RANK)
    return share, share
