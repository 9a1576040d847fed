"""What stands around a transfer in a figure: names, operating point, net effect, notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit._compare import deployment_text
from ledgerkit._techniques.stated import stated
from ledgerkit.errors import LedgerError
from ledgerkit.spec.axes import Phase, Resource
from ledgerkit.text import LANGUAGES

if TYPE_CHECKING:
    import polars as pl

    from ledgerkit._techniques.double_entry import Transfer

__all__ = ["summary"]

_LOOKED_AT: tuple[tuple[Resource, Phase], ...] = (
    ("compute", "decode"), ("read", "decode"), ("time", "decode"),
)  # fmt: skip


def summary(transfer: Transfer) -> pl.DataFrame:
    """Describe a transfer in one row.

    Columns: title, model, prompt_tokens, output_tokens, concurrency, before and after of label,
    deployment text, fits, resident and limit bytes, ttft_s, tpot_s; break-even sentences along the
    context, stated risks and needs, in both languages; books_a_cost, is_empty.
    """
    import polars as pl

    names = stated()
    steps = [names[step.technique] for step in transfer.steps]
    if transfer.backwards:
        steps.reverse()
    work = transfer.start.point.workload
    row: dict[str, Any] = {
        "model": transfer.start.point.model.name,
        "prompt_tokens": work.prompt_tokens,
        "output_tokens": work.output_tokens,
        "concurrency": work.concurrency,
        "books_a_cost": transfer.books_a_cost,
        "is_empty": transfer.is_empty,
    }
    removes = [(step.action == "remove") != transfer.backwards for step in transfer.steps]
    for name, side in (("before", transfer.before), ("after", transfer.after)):
        zh, en = deployment_text(side.ledger)
        row |= {
            f"{name}_label": side.point.model.name,
            f"{name}_deployment_zh": zh,
            f"{name}_deployment_en": en,
            f"{name}_fits": side.ledger.fits,
            f"{name}_resident_bytes": side.net["resident_bytes_device"],
            f"{name}_limit_bytes": side.ledger.capacity_bytes,
            f"{name}_ttft_s": side.net["ttft_s"],
            f"{name}_tpot_s": side.net["tpot_s"],
        }
    turns = _break_evens(transfer)
    for language in LANGUAGES:
        row |= {
            f"title_{language}": " + ".join(
                ("− " if gone else "") + step[f"name_{language}"]
                for step, gone in zip(steps, removes, strict=True)
            ),
            f"break_even_{language}": "\n".join(turn.words(language) for turn in turns),
            f"risk_{language}": ("；" if language == "zh" else "; ").join(
                dict.fromkeys(step[f"risk_{language}"] for step in steps)
            ),
        }
    return pl.DataFrame([row])


def _break_evens(transfer: Transfer) -> list[Any]:
    """Where it turns along the context, for what decode computes, reads and takes."""
    found = []
    for resource, phase in _LOOKED_AT:
        old, new = transfer.total(phase, resource)
        if abs(new - old) <= 1e-6 * max(abs(old), abs(new)):
            continue
        try:
            turn = transfer.break_even("context", resource, phase=phase)
        except LedgerError:
            continue
        if turn.first is not None or resource == "time":
            found.append(turn)
    return found
