"""A reading in words: the blocks of its report, in one language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ledgerkit._compare import device_name
from ledgerkit._readings.document import Block, Code, Heading, Paragraph, Table
from ledgerkit.text import get
from ledgerkit.text.numbers import (
    byte_size,
    change,
    context,
    count,
    duration,
    integer_shares,
    rate,
    si,
)

if TYPE_CHECKING:
    from ledgerkit._reading import ModelReading
    from ledgerkit._readings.misreadings import Misreading
    from ledgerkit._readings.structures import Structure

_VERBS = {
    "compute": "compute_less", "read": "read_less", "resident": "store_less",
    "communicate": "communicate_less", "steps": "schedule_better",
}  # fmt: skip


def blocks(reading: ModelReading, language: str) -> list[Block]:
    """Everything, in the order of the article."""
    return [
        *_opening(reading, language),
        *_fields(reading, language),
        *_structures(reading, language),
        *_balance(reading, language, saved=True),
        *_balance(reading, language, saved=False),
        *_risks(reading, language),
        *_test(reading, language),
        *_checks(reading, language),
        *_notes(reading, language),
    ]


def _opening(reading: ModelReading, language: str) -> Iterator[Block]:
    point, books = reading.point, reading.ledger
    yield Heading(get("reading.report.title", language, name=reading.model.name), 1)
    yield Paragraph(
        get(
            "reading.report.point", language, devices=point.deployment.devices,
            hardware=device_name(point.hardware.slug),
            tp=point.deployment.tp, pp=point.deployment.pp,
            prompt=context(point.workload.prompt_tokens),
            output=count(point.workload.output_tokens), concurrency=point.workload.concurrency,
            fits=get(f"fits.{books.fits}", language),
        )
    )  # fmt: skip
    share = books.share()
    whole = dict(zip(share, integer_shares(list(share.values())), strict=True))
    yield Paragraph(
        get(
            "reading.report.times", language, ttft=duration(books.ttft_s),
            tpot=duration(books.tpot_s), memory=byte_size(books.resident_bytes_device),
            capacity=byte_size(books.capacity_bytes), **whole,
        )
    )  # fmt: skip


def _head(language: str, *names: str) -> tuple[str, ...]:
    return tuple(get(f"reading.col.{name}", language) for name in names)


def _fields(reading: ModelReading, language: str) -> Iterator[Block]:
    yield Heading(get("reading.step.1", language))
    rows = tuple(
        (
            get(f"reading.field.{field.name}", language), field.value,
            get(f"reading.origin.{field.origin.replace(' ', '_')}", language), field.where or "–",
        )
        for field in reading.basic_fields(language)
    )  # fmt: skip
    yield Table(_head(language, "field", "value", "origin", "where"), rows)


def structure_text(structure: Structure, language: str | None = None) -> str:
    """Describe a structure in a few words."""
    return get(f"reading.has.{structure.id}", language, layers=structure.layers,
               **structure.numbers)  # fmt: skip


def _structures(reading: ModelReading, language: str) -> Iterator[Block]:
    yield Heading(get("reading.step.2", language))
    rows = tuple(
        (
            structure_text(s, language),
            get("reading.comma", language).join(
                get(f"ledger.{ledger}", language) for ledger in (s.ledger, *s.also)
            ),
        )
        for s in reading.structures
    )
    yield Table(_head(language, "structure", "ledger"), rows)


def _amount(row: dict[str, Any], language: str) -> str:
    def write(value: float) -> str:
        return si(value, "FLOP") if row["resource"] == "compute" else byte_size(value)

    if row["resource"] == "steps":
        launches = change(row["before"], row["after"], count, language)
        return get("reading.launches", language, change=launches)
    return change(row["before"], row["after"], write, language)


def _balance(reading: ModelReading, language: str, *, saved: bool) -> Iterator[Block]:
    yield Heading(get("reading.step.3" if saved else "reading.step.4", language))
    rows: list[tuple[str, ...]] = []
    for balance in reading.balances:
        for row in balance.rows():
            if (row["change"] < 0) != saved:
                continue
            side = "saved" if saved else "paid"
            rows.append(
                (
                    structure_text(balance.structure, language),
                    get(f"reading.against.{balance.counterfactual}", language),
                    get(f"phase.{row['phase']}", language),
                    get(f"verb.{side}.{_VERBS[row['resource']]}", language),
                    get(f"ledger.plain.{row['ledger']}", language),
                    _amount(row, language),
                )
            )
    head = _head(language, "structure", "against", "phase", "verb", "ledger", "change")
    if rows:
        yield Table(head, tuple(rows))
    else:
        yield Paragraph(get("reading.saves.none" if saved else "reading.costs.none", language))
    if not saved:
        yield from _net(reading, language)
    if saved:
        for balance in reading.balances:
            if balance.transfer is None:
                yield Paragraph(
                    get("reading.cannot", language, reason=balance.reason),
                    structure_text(balance.structure, language),
                )


def _net(reading: ModelReading, language: str) -> Iterator[Block]:
    """What a user notices of each structure."""
    rows = []
    for balance in reading.balances:
        if balance.transfer is None:
            continue
        before, after = balance.transfer.before.net, balance.transfer.after.net
        rows.append(
            (
                structure_text(balance.structure, language),
                get(f"reading.against.{balance.counterfactual}", language),
                change(before["ttft_s"], after["ttft_s"], duration, language),
                change(before["tpot_s"], after["tpot_s"], duration, language),
                change(
                    before["resident_bytes_device"], after["resident_bytes_device"], byte_size,
                    language,
                ),
            )
        )  # fmt: skip
    if rows:
        yield Paragraph(get("reading.net", language))
        yield Table(_head(language, "structure", "against", "first", "tpot", "memory"),
                    tuple(rows))  # fmt: skip


def _risks(reading: ModelReading, language: str) -> Iterator[Block]:
    rows = tuple(
        (structure_text(s, language), get(f"reading.risk.{risk}", language), s.source)
        for s in reading.structures
        for risk in s.risks
    )
    if rows:
        yield Table(_head(language, "structure", "risk", "where"), rows)
    else:
        yield Paragraph(get("reading.risk.none", language))


def _test(reading: ModelReading, language: str) -> Iterator[Block]:
    yield Heading(get("reading.step.5", language))
    plan = reading.load_test
    if plan is None:
        yield Paragraph(get("reading.test.none", language, reason=reading.load_test_reason))
        return
    yield Paragraph(get("reading.test.intro", language))
    yield Table(
        _head(language, "cell", "fits", "ttft", "step", "kv_share"),
        tuple(
            (
                cell.name, get(f"fits.{cell.fits}", language) if cell.fits else "–",
                "–" if cell.ttft_s is None else duration(cell.ttft_s),
                "–" if cell.step_s is None else duration(cell.step_s),
                "–" if cell.kv_share is None else f"{100 * cell.kv_share:.0f}%",
            )
            for cell in plan.cells
        ),
    )  # fmt: skip
    yield Code(reading.load_test_code)
    yield Paragraph(get("reading.test.rule", language))


def _checks(reading: ModelReading, language: str) -> Iterator[Block]:
    yield Heading(get("reading.step.checks", language))
    for check in reading.misreadings:
        belief = get(f"reading.belief.{check.id}", language)
        verdict = get(f"reading.verdict.{check.verdict}", language)
        lead = get("reading.belief", language, belief=belief, verdict=verdict)
        yield Paragraph(finding(check, language), lead)
        if check.id == "window_recall" and reading.recall_test_code is not None:
            yield Code(reading.recall_test_code)


def _notes(reading: ModelReading, language: str) -> Iterator[Block]:
    notes = reading.notes(language)
    if notes:
        yield Heading(get("reading.step.notes", language))
        for note in notes:
            yield Paragraph(note)


def finding(check: Misreading, language: str | None = None) -> str:
    """Say what the numbers are."""
    n = check.numbers

    def say(key: str, **fields: Any) -> str:
        return get(f"reading.found.{key}", language, **fields)

    match check.id:
        case "active_memory":
            return say(
                "active_memory", active=parameters(n["active"]),
                total=parameters(n["total"]), active_bytes=byte_size(n["active_bytes"]),
                weight_bytes=byte_size(n["weight_bytes"]), ratio=f"{n['ratio']:.1f}",
            )  # fmt: skip
        case "long_context" if check.verdict == "absent":
            return say("short_context", context=context(n["longest"]))
        case "long_context":
            return say(
                "long_context", context=context(n["longest"]), cache=byte_size(n["cache_bytes"]),
                ttft=duration(n["ttft_s"]), tpot=duration(n["tpot_s"]), short=context(n["short"]),
                times=f"{n['times']:.2g}", seats=count(n["max_concurrency"]),
                fits=get(f"fits.{n['fits']}", language),
            )  # fmt: skip
        case "runs_locally":
            parts = [_local(row, n["prompt_tokens"], language) for row in n["devices"]]
            return say("runs_locally", devices=get("reading.and", language).join(parts))
        case "moe_faster" if check.verdict == "absent":
            return say("moe_none")
        case "moe_faster" if check.verdict == "test":
            return say("moe_test")
        case "moe_faster":
            ratios = {
                key: get("reading.comma", language).join(
                    say("moe_row", concurrency=f"{row['concurrency']:.0f}", ratio=f"{row[key]:.2f}")
                    for row in n["rows"]
                )
                for key in ("equal_active", "equal_total")
            }
            return say("moe_faster", active=ratios["equal_active"], total=ratios["equal_total"])
        case _ if check.verdict == "absent":
            return say("recall_none")
        case _:
            return say(
                "recall", layers=n["layers"], all_layers=n["all_layers"], full=n["full_layers"],
                window=count(n["window"]) if n["window"] else get("reading.no_window", language),
                depths=" / ".join(count(depth) for depth in n["depths"]),
            )  # fmt: skip


def parameters(number: float) -> str:
    """Write a number of parameters as model cards do.

    Examples
    --------
    >>> parameters(31_687_095_808), parameters(1.026e12), parameters(124_439_808)
    ('31.7B', '1.03T', '124M')
    """
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return count(number)


def _local(row: dict[str, Any], prompt: int, language: str | None) -> str:
    fields: dict[str, Any] = {"device": device_name(row["device"])}
    if row["fits"] == "yes":
        fields |= {"rate": rate(1.0 / row["tpot_s"]), "ttft": duration(row["ttft_s"]),
                   "prompt": context(prompt)}  # fmt: skip
    else:
        fields |= {"need": byte_size(row["need_bytes"]), "memory": byte_size(row["memory_bytes"])}
    text = get(f"reading.found.local_{row['fits']}", language, **fields)
    small = row.get("four_bit")
    if small is None or small["need_bytes"] >= row["need_bytes"]:
        return text
    if small["fits"] == "yes":
        return text + get("reading.found.four_yes", language, rate=rate(1.0 / small["tpot_s"]))
    need = byte_size(small["need_bytes"])
    return text + get(f"reading.found.four_{small['fits']}", language, need=need)
