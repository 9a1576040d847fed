"""The expression of each kind of entry, from the same coefficients that the kernels read."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ledgerkit._explain import Value
from ledgerkit.costs.operations import Link, Operation, Work
from ledgerkit.costs.table import CostTable, Price
from ledgerkit.kernels import columns as c
from ledgerkit.spec.workpoint import WorkPoint

PREFILL, DECODE = 0, 1


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression and the values that its names stand for."""

    expression: str
    values: dict[str, Value]


def _term(name: str, factor: str) -> str:
    return f"{name} * {factor}" if factor != "1" else name


def _scaled(layers: float, inner: str) -> str:
    if layers == 1:
        return inner
    return f"layers * ({inner})" if " + " in inner else f"layers * {inner}"


class OperationFormulas:
    """Expressions of one operation in one phase."""

    def __init__(self, table: CostTable, index: int, phase: int, point: WorkPoint) -> None:
        self.operation: Operation = table.operations[index]
        share = self.operation.decode if phase else self.operation.prefill
        self.work: Work = share.device
        self.price: Price = table.prices[index][phase]
        self.phase = phase
        self.point = point
        self.chunk_tokens = table.chunk_tokens
        self.count = float(table.ops["mid"][phase, index, c.COUNT])
        self.amount_count = float(table.ops["mid"][phase, index, c.AMOUNT_COUNT])
        self.values: dict[str, Value] = {}

    def _use(self, **values: Value) -> None:
        self.values.update(values)

    @property
    def _once(self) -> bool:
        """Sampled positions exist in the last chunk only, so no sum over chunks is needed."""
        return self.work.scope == c.SCOPE_SAMPLED and self.phase == PREFILL

    def _tokens(self) -> str:
        if self._once:
            return "1"
        if self.phase == PREFILL:
            return "(n + p)" if self.work.scope == c.SCOPE_CONTEXT else "n"
        if self.work.scope == c.SCOPE_EXPERTS:
            self._use(group_tokens=self.point.group_tokens)
            return "group_tokens"
        if self.work.scope == c.SCOPE_CONTEXT:
            self._use(sequences=self.point.sequences, context=self.point.context)
            return "sequences * context"
        return self._sequences()

    def _sequences(self) -> str:
        if self.phase == PREFILL:
            return "1"
        self._use(sequences=self.point.sequences)
        return "sequences"

    def _past(self) -> tuple[str, str]:
        if self.phase == PREFILL:
            return "n", "p"
        self._use(context=self.point.context)
        return "1", "context - 1"

    def _limits(self, *names: str) -> str:
        work = self.work
        text = []
        for name in names:
            topk = work.topk * work.ratio
            value = {
                "window": work.window,
                "topk": topk,
                "limit": min(work.window, topk),
                "chunk": work.chunk,
            }[name]
            self._use(**{name: value})
            text.append(name)
        return ", ".join(text)

    def flop(self) -> str:
        """FLOP of one layer in one step."""
        work, terms = self.work, []
        if work.flop_per_token:
            self._use(flop_per_token=work.flop_per_token)
            terms.append(_term("flop_per_token", self._tokens()))
        if work.flop_per_pair:
            self._use(flop_per_pair=work.flop_per_pair)
            n, p = self._past()
            count = f"pairs({n}, {p}, {self._limits('limit', 'chunk')})"
            terms.append(self._per_ratio(f"flop_per_pair * {self._sequences()} * {count}"))
        return " + ".join(terms) or "0"

    def _per_ratio(self, text: str) -> str:
        if self.work.ratio == 1:
            return text
        self._use(ratio=self.work.ratio)
        return f"{text} / ratio"

    def read(self) -> str:
        """Bytes that one layer reads in one step."""
        work, terms = self.work, []
        if work.read_per_step:
            self._use(weight_bytes=work.read_per_step)
            terms.append("weight_bytes")
        if work.read_per_expert:
            self._use(expert_bytes=work.read_per_expert, experts=work.experts, miss=work.miss)
            tokens = self._tokens()
            terms.append(f"expert_bytes * distinct({tokens}, experts, miss)")
        if work.read_per_kv_token:
            self._use(kv_bytes=work.read_per_kv_token)
            n, p = self._past()
            count = f"seen({n}, {p}, {self._limits('window', 'topk', 'chunk')})"
            terms.append(self._per_ratio(f"kv_bytes * {self._sequences()} * {count}"))
        if work.read_per_token:
            self._use(read_per_token=work.read_per_token)
            terms.append(_term("read_per_token", self._tokens()))
        if work.read_per_sequence:
            self._use(read_per_sequence=work.read_per_sequence)
            terms.append(_term("read_per_sequence", self._sequences()))
        return " + ".join(terms) or "0"

    def write(self) -> str:
        """Bytes that one layer writes in one step."""
        work, terms = self.work, []
        if work.write_per_token:
            self._use(write_per_token=work.write_per_token)
            terms.append(_term("write_per_token", self._tokens()))
        if work.write_per_sequence:
            self._use(write_per_sequence=work.write_per_sequence)
            terms.append(_term("write_per_sequence", self._sequences()))
        return " + ".join(terms) or "0"

    def _finish(self, inner: str, layers: float, batches: float = 1.0) -> Formula:
        self._use(layers=layers)
        text = _scaled(layers, inner)
        if self.phase == PREFILL and not self._once:
            text = self._over_chunks(text)
        elif batches != 1:
            self._use(micro_batches=batches)
            text = f"micro_batches * {text}" if layers != 1 else f"micro_batches * ({text})"
        names = {n for n in self.values if _mentions(text, n)}
        return Formula(text, {name: self.values[name] for name in sorted(names)})

    def _over_chunks(self, text: str) -> str:
        self._use(
            prompt_tokens=self.point.prompt_tokens,
            cached_tokens=self.point.cached_tokens,
            chunk_tokens=self.chunk_tokens,
        )
        return f"sum({text} for n, p in chunks(prompt_tokens, cached_tokens, chunk_tokens))"

    def amount(self, resource: str) -> Formula:
        """Formula of a FLOP or byte entry."""
        inner = {"compute": self.flop, "read": self.read, "write": self.write}[resource]()
        batches = self.point.micro_batches if self.phase == DECODE else 1.0
        return self._finish(inner, self.amount_count, batches)

    def time(self, bound: str) -> Formula:
        """Formula of a time entry: ``compute``, ``memory`` or ``either`` binds."""
        self._use(
            peak_flop_per_s=self.price.peak_flop_per_s, eta_compute=self.price.eta_compute.mid,
            memory_bytes_per_s=self.price.bytes_per_s, eta_memory=self.price.eta_memory.mid,
        )  # fmt: skip
        flop = self.flop()
        moved = " + ".join(text for text in (self.read(), self.write()) if text != "0")
        compute = f"({flop}) / (peak_flop_per_s * eta_compute)"
        memory = f"({moved}) / (memory_bytes_per_s * eta_memory)"
        if flop == "0":
            return self._finish(memory, self.count)
        function = {"compute": "if_compute_binds", "memory": "if_memory_binds", "either": "max"}
        return self._finish(f"{function[bound]}({compute}, {memory})", self.count)


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def link_formula(
    table: CostTable, index: int, phase: int, point: WorkPoint, resource: str, exposed: float
) -> Formula:
    """Formula of a communication entry: bytes, rounds or seconds."""
    link: Link = table.links[index]
    row = table.link_rows["mid"][phase, index]
    batches = point.micro_batches if phase == DECODE else 1.0
    values: dict[str, Value] = {
        "count": float(row[c.L_AMOUNT_COUNT] if resource == "communicate" else row[c.L_COUNT]),
        "ranks": link.ranks,
        "token_bytes": float(row[c.L_TOKEN_BYTES]),
        "gather_bytes": link.gather_bytes,
        "alpha_s": float(row[c.L_ALPHA]),
        "two_shot_s": float(row[c.L_ALPHA_TWO_SHOT]),
        "s_per_byte": float(row[c.L_S_PER_BYTE]),
        "exposed": exposed,
        "micro_batches": batches,
        "tokens": point.sequences,
        "group_tokens": point.group_tokens,
        "prompt_tokens": point.prompt_tokens,
        "cached_tokens": point.cached_tokens,
        "chunk_tokens": table.chunk_tokens,
    }
    tokens, group = ("n", "n") if phase == PREFILL else ("tokens", "group_tokens")
    one = f"(ranks - 1) * token_bytes * {tokens}"
    two = f"2 * (ranks - 1) / ranks * token_bytes * {tokens}"
    if link.kind == c.KIND_ALL_REDUCE:
        moved = f"quicker_bytes({one}, {two}, two_shot_s, s_per_byte)"
        seconds = f"alpha_s + min({one} * s_per_byte, two_shot_s + {two} * s_per_byte)"
    elif link.kind == c.KIND_EXCHANGE:
        moved = f"min(token_bytes * {tokens}, gather_bytes * {group})"
        seconds = f"alpha_s + two_shot_s + {moved} * s_per_byte"
    else:
        moved = f"token_bytes * {tokens}"
        seconds = f"alpha_s + {moved} * s_per_byte"
    text = {
        "communicate": f"count * {moved}" if batches == 1 else f"count * micro_batches * {moved}",
        "steps": "count",
        "time": f"count * ({seconds})" + ("" if exposed == 1.0 else " * exposed"),
    }[resource]
    if phase == PREFILL:
        text = f"sum({text} for n, p in chunks(prompt_tokens, cached_tokens, chunk_tokens))"
    return Formula(text, {k: v for k, v in values.items() if _mentions(text, k)})


def finite(values: dict[str, Value]) -> dict[str, Value]:
    """Drop limits that do not bind, for display."""
    return {k: v for k, v in values.items() if isinstance(v, tuple) or not math.isinf(v)}
