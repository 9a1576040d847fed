"""Seconds of engine steps that are neither a plain decode nor a plain prefill, from the cost table.

*Verifying* steps have several query tokens for each sequence; *mixed* steps carry a prompt chunk
beside decoding sequences. In a mixed step all tokens share one pass of the weights, and attention
runs for the chunk and for the sequences one after the other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ledgerkit.errors import DeploymentError
from ledgerkit.kernels import columns as c
from ledgerkit.kernels import step as kernels
from ledgerkit.spec.model import LayerGroup, Model

if TYPE_CHECKING:
    import numpy.typing as npt

    from ledgerkit.costs.table import CostTable

_OF_A_SEQUENCE = (c.F_PAIR, c.R_KV, c.R_SEQUENCE, c.W_SEQUENCE)


def _run(
    ops: npt.NDArray[np.float64], links: npt.NDArray[np.float64],
    scalars: npt.NDArray[np.float64], n: float, p: float, sequences: float, group_tokens: float,
    sampled: float, batches: float = 1.0,
) -> float:  # fmt: skip
    return kernels.step(
        ops, links, scalars, n, p, sequences, group_tokens, sampled, batches,
        np.zeros((len(ops), c.AMOUNTS)), np.zeros((len(links), c.LINK_AMOUNTS)),
        np.zeros(c.HOST_AMOUNTS),
    )  # fmt: skip


def verify_s(table: CostTable, context: int, sequences: int, tokens: int = 1) -> float:
    """Seconds of a decode step with so many query tokens for each sequence.

    Parameters
    ----------
    table : CostTable
    context : int
        Tokens of a sequence, the first new one included.
    sequences : int
        Of the replica; the fullest attention rank is priced, in as many micro-batches as there are
        pipeline stages.
    tokens : int
        1 = plain decode.
    """
    per_rank = math.ceil(sequences / table.deployment.dp_attention)
    batches = min(table.deployment.pp, per_rank)
    mine = float(math.ceil(per_rank / batches))
    group = float(math.ceil(sequences / batches) * tokens)
    return _run(
        table.ops["mid"][1], table.link_rows["mid"][1], table.scalars["mid"][1], float(tokens),
        context - 1.0, mine, group, mine * tokens, float(batches),
    )  # fmt: skip


def mixed_s(
    table: CostTable, *, chunk_tokens: int, past_tokens: int, sequences: int, context: int
) -> float:
    """Seconds of a step with one prompt chunk and so many decoding sequences.

    Parameters
    ----------
    table : CostTable
    chunk_tokens, past_tokens : int
        Tokens of the chunk, and of its prompt before it.
    sequences, context : int
        Sequences that decode, and their context.

    Raises
    ------
    DeploymentError
        There are pipeline stages: a chunk passes them one after the other, sequences all at once.
    """
    if table.deployment.pp > 1:
        raise DeploymentError(
            "a step that mixes a prompt with decoding is not priced over pipeline stages",
            given=table.deployment.pp, allowed="1", fix="use pp=1",
        )  # fmt: skip
    prefill, decode = table.ops["mid"]
    links, scalars = table.link_rows["mid"][0], table.scalars["mid"][0]
    bare = scalars.copy()
    bare[[c.KERNELS, c.HOST_STEP_S, c.HOST_SEQUENCE_S]] = 0.0
    own = np.zeros(len(decode), dtype=bool)
    for rows in (prefill, decode):
        own |= (rows[:, _OF_A_SEQUENCE] != 0).any(axis=1) | (rows[:, c.SCOPE] == c.SCOPE_CONTEXT)
    tokens = float(chunk_tokens + sequences)
    no_links = links[:0]
    busy = _run(decode[~own], links, bare, 1.0, 0.0, tokens, tokens, sequences + 1.0)
    busy += _run(
        prefill[own], no_links, bare, float(chunk_tokens), float(past_tokens), 1.0,
        float(chunk_tokens), 0.0,
    )  # fmt: skip
    if sequences:
        busy += _run(
            decode[own], no_links, bare, 1.0, context - 1.0, float(sequences), float(sequences), 0.0
        )
    launch = max(0.0, float(scalars[c.KERNELS] * scalars[c.HOST_PREFILL_KERNEL_S]) - busy)
    host = float(scalars[c.HOST_STEP_S] + scalars[c.HOST_SEQUENCE_S] * (sequences + 1.0))
    return busy + launch + host


def draft_of_mtp(model: Model) -> Model | None:
    """One MTP block with the model's head, as a model of one layer; None without MTP.

    What joins the two inputs is work of a layer and counts as dense. So does a head of the
    block's own, which takes the place of the model's: it is not shared.
    """
    if model.mtp is None:
        return None
    block = model.mtp.group
    extra = [
        w.model_copy(update={"ledger": "ffn_mlp", "account": "dense"}) for w in model.mtp.extra
    ]
    joining = tuple(w for w in extra if w.use != "head")
    heads = tuple(w for w in extra if w.use == "head")
    table = model.globals
    if heads:
        table = (*(w for w in table if w.use != "head"), *heads)
    layer = LayerGroup(
        layers=(0,), attention=block.attention, ffn=block.ffn,
        weights=(*block.weights, *joining),
    )  # fmt: skip
    fields = {name: getattr(model, name) for name in Model.model_fields}
    changed = {"slug": f"{model.slug}-mtp", "groups": (layer,), "globals": table, "mtp": None}
    return Model(**{**fields, **changed})
