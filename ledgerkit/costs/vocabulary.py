"""The vocabulary: rows of a tied embedding, and the logits.

Source: a tied table is stored once and read twice, as rows by the embedding and as a whole by the
head. Logits are fp32: one write and two reads (softmax, sampling) of ``vocab_size`` numbers for
each sampled position. Worked: Llama-3.1-8B writes 0.513 MB of logits per sampled position.
"""

from __future__ import annotations

from ledgerkit.costs.operations import Operation, Share, Work
from ledgerkit.kernels import columns as c
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.model import Model
from ledgerkit.spec.precision import storage

_FP32 = 4.0


def vocabulary_operations(model: Model, deployment: Deployment) -> list[Operation]:
    """Logits, and the embedding rows of a tied table."""
    logits = model.vocab_size * _FP32 / deployment.tp
    works = [
        ("logits", Work(scope=c.SCOPE_SAMPLED, read_per_token=2 * logits, write_per_token=logits))
    ]
    if model.tie_word_embeddings:
        head = next(w for w in model.globals if w.use == "head")
        row = storage(head.dtype).bytes((head.shape[1],))
        works.append(("embedding", Work(read_per_token=row / deployment.tp)))
    return [
        Operation(
            name=name, ledger="ffn_mlp", compute_account="vocab", byte_account="vocab", count=1,
            prefill=Share.same(work), decode=Share.same(work),
            prefill_class=("elementwise", "bf16"), decode_class=("elementwise", "bf16"),
            source="fp32 logits: one write, two reads" if name == "logits" else "one row per token",
            basis="estimated" if name == "logits" else "exact", at_entry=name == "embedding",
        )
        for name, work in works
    ]  # fmt: skip
