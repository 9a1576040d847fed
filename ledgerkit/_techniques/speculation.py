"""Speculative decoding and MTP: fewer steps for larger ones.

A verifying step gives every sequence ``draft_tokens + 1`` query tokens and yields
``tokens_per_step`` of them. Its rows come from the cost table, divided by that number; FLOP beyond
what the kept tokens need are rejected work and book to ``scheduling.draft``, as does everything
that the draft itself does or holds. The host's step is not paid twice.

A draft model runs in the deployment of the large one (its own weights in its checkpoint's dtype)
and prefills the prompt too. ``draft=None`` is drafting without a model (prompt lookup): nothing but
the verifying steps. MTP drafts with the model's own block: embedding and head are stored once.
"""

from __future__ import annotations

from collections.abc import Iterator

from ledgerkit._amounts import PhaseAmounts, run_step
from ledgerkit._scheduling.steps import draft_of_mtp
from ledgerkit._techniques.point import Point, whole
from ledgerkit._techniques.sides import Overlay, Row, Side, State
from ledgerkit.catalog.models import load_model
from ledgerkit.costs.linear import SOURCE as FROM_WEIGHTS
from ledgerkit.costs.scheduling import speculation
from ledgerkit.costs.table import CostTable
from ledgerkit.errors import TechniqueError
from ledgerkit.kernels import columns as c
from ledgerkit.spec.attention import LatentAttention
from ledgerkit.spec.axes import Account, Ledger, Phase, Resource
from ledgerkit.spec.model import Model
from ledgerkit.spec.workpoint import WorkPoint

_HOST = ("host",)


def apply_speculation(
    state: State,
    *,
    draft: Model | str | None = None,
    acceptance: float = 0.8,
    draft_tokens: int = 4,
) -> State:
    """Draft with a small model, or by looking the prompt up, and verify."""
    model = load_model(draft) if isinstance(draft, str) else draft
    return _speculate(state, model, acceptance, whole("draft_tokens", draft_tokens), mtp=False)


def apply_mtp(state: State, *, acceptance: float = 0.85, draft_tokens: int = 1) -> State:
    """Draft with the model's own multi-token-prediction block."""
    model = state.point.model
    block = draft_of_mtp(model)
    if block is None:
        raise TechniqueError(
            f"{model.slug} has no MTP block", given=model.slug,
            fix="take a model with one (DeepSeek-V3, MiMo, GLM-4.5), or 'speculative_decoding'",
        )  # fmt: skip
    return _speculate(state, block, acceptance, whole("draft_tokens", draft_tokens), mtp=True)


def _speculate(
    state: State, draft: Model | None, acceptance: float, draft_tokens: int, *, mtp: bool
) -> State:
    point = state.point
    if point.deployment.pp > 1:
        raise TechniqueError("a verifying step is not priced over pipeline stages",
                             given=point.deployment.pp, fix="use pp=1")  # fmt: skip
    expected = speculation.tokens_per_step(acceptance, draft_tokens)
    table = point.table()
    drafting = None if draft is None else _draft_side(point, draft)

    def book(phase: Phase, rows: list[Row]) -> list[Row]:
        if phase == "decode":
            rows = list(_verified(point, table, rows, draft_tokens, expected))
        if drafting is not None:
            steps = draft_tokens / expected if phase == "decode" else 1.0
            rows += _drafts(drafting.rows(phase), steps, mtp=mtp)
        return rows

    note = (
        f"{draft_tokens} draft tokens, each accepted with probability {acceptance:g} after the one "
        f"before it: {expected:.3f} tokens per step; decode amounts are per output token"
    )
    return state.booked(Overlay(book, notes=(note,)))


def _draft_side(point: Point, draft: Model) -> Side:
    fields = {"weights": None, "experts": None, "max_model_len": None}
    if not any(weight.routed for weight, _ in draft.booked_weights()):
        fields |= {"ep": 1}  # type: ignore[dict-item]
    latent = all(isinstance(group.attention, LatentAttention) for group in draft.groups)
    if point.deployment.kv_dtype == "fp8_ds_mla" and not latent:
        fields |= {"kv_dtype": "fp8"}  # type: ignore[dict-item]
    return Side(State(point.with_model(draft).with_deployment(**fields)))


def _drafts(rows: tuple[Row, ...], times: float, *, mtp: bool) -> list[Row]:
    """Rows of the draft, booked to its account."""
    found = []
    for row in rows:
        # the engine's step is one, its reserve too, and an MTP block shares embedding and head
        if row.account in (*_HOST, "padding") or (
            mtp and row.phase == "hold" and row.account == "vocab"
        ):
            continue
        scale = 1.0 if row.phase == "hold" else times
        replica = None if row.replica is None else row.replica * scale
        found.append(
            row._replace(ledger="scheduling", account="draft", amount=row.amount * scale,
                         replica=replica)
        )  # fmt: skip
    return found


def _verified(
    point: Point, table: CostTable, rows: list[Row], draft_tokens: int, expected: float
) -> Iterator[Row]:
    """Rows of a verifying step, per token that it yields."""
    layout, work = point.deployment, point.workload
    where = WorkPoint.of(layout, work)
    tokens = draft_tokens + 1.0
    amounts = run_step(
        table, where, table.scalars["mid"][1], 1,
        (tokens, where.context - 1.0, where.sequences, where.group_tokens * tokens,
         where.sequences * tokens, 1.0),
    )  # fmt: skip
    ratio = {
        (row.ledger, row.account, row.op, row.resource): row.replica / row.amount
        for row in rows
        if row.replica is not None and row.amount
    }
    plain: dict[tuple[Ledger, Account, str], float] = {}
    for row in rows:
        if row.resource == "compute":
            key = (row.ledger, row.account, row.op)
            plain[key] = plain.get(key, 0.0) + row.amount
    step = list(_step_rows(table, amounts))
    verified: dict[tuple[Ledger, Account, str], float] = {}
    for row in step:
        if row.resource == "compute":
            key = (row.ledger, row.account, row.op)
            verified[key] = verified.get(key, 0.0) + row.amount
    yield from _copies(rows, step, expected)
    for row in step:
        share = ratio.get((row.ledger, row.account, row.op, row.resource), float(layout.devices))
        per_device = row.amount / expected

        def row_of(amount: float, row: Row = row, share: float = share) -> Row:
            replica = None if row.resource in ("time", "steps") else amount * share
            return row._replace(amount=amount, replica=replica)

        if row.resource != "compute":
            yield row_of(per_device)
            continue
        key = (row.ledger, row.account, row.op)
        kept = per_device * min(1.0, plain.get(key, 0.0) * expected / verified[key])
        yield row_of(kept)
        if per_device > kept:
            rejected = row_of(per_device - kept)
            yield rejected._replace(ledger="scheduling", account="draft", op=f"rejected {row.op}")


def _copies(rows: list[Row], step: list[Row], expected: float) -> Iterator[Row]:
    """What the layout holds or does more than once: it grows as the work that it copies."""

    def sums(many: list[Row]) -> dict[tuple[str, Resource], float]:
        found: dict[tuple[str, Resource], float] = {}
        for row in many:
            if row.amount:
                found[row.op, row.resource] = found.get((row.op, row.resource), 0.0) + row.amount
        return found

    grown, once = sums(step), sums(rows)
    for row in rows:
        key = (row.op.removesuffix(" copies"), row.resource)
        if row.op.endswith(" copies") and row.replica and key in once:
            yield row._replace(replica=row.replica * grown[key] / once[key] / expected)


def _step_rows(table: CostTable, amounts: PhaseAmounts) -> Iterator[Row]:
    """Rows of one decode step on the busiest device."""

    def row(ledger: Ledger, account: Account, op: str, resource: Resource, amount: float,
            *, weights: bool = False) -> Row:  # fmt: skip
        return Row("decode", ledger, account, op, resource, amount, None, weights)

    for op, sums in zip(table.operations, amounts.ops, strict=True):
        linear = op.source == FROM_WEIGHTS
        for account, resource, column in (
            (op.compute_account, "compute", c.A_FLOP), (op.byte_account, "read", c.A_READ),
            (op.byte_account, "write", c.A_WRITE), (op.compute_account, "time", c.A_TIME_COMPUTE),
            (op.byte_account, "time", c.A_TIME_MEMORY),
        ):  # fmt: skip
            if sums[column]:
                yield row(op.ledger, account, op.name, resource, float(sums[column]),  # type: ignore[arg-type]
                          weights=linear)  # fmt: skip
    for link, sums in zip(table.links, amounts.links, strict=True):
        for resource, column in (("communicate", c.C_BYTES), ("steps", c.C_STEPS),
                                 ("time", c.C_TIME)):  # fmt: skip
            yield row("scheduling", link.account, link.name, resource, float(sums[column]))  # type: ignore[arg-type]
    host: tuple[tuple[Account, str, Resource, int], ...] = (
        ("launch", "kernels", "steps", c.H_KERNELS),
        ("launch", "kernels", "time", c.H_LAUNCH),
        ("host", "engine step", "time", c.H_HOST),
        ("pp", "stage imbalance", "time", c.H_STAGES),
    )
    for account, name, resource, column in host:
        if amounts.host[column]:
            yield row("scheduling", account, name, resource, float(amounts.host[column]))
