"""``lk.capacity``: how many tokens and sequences a deployment holds, and what limits it.

Three numbers that are often taken for each other: the *ideal* live bytes of a sequence, the bytes
that an engine *reserves* for it, and what the engine's log *prints*.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from ledgerkit._capacities.kinds import LayerKind, layer_kinds
from ledgerkit._capacities.paged import PagePlan, page_plan
from ledgerkit._capacities.split import SplitPools
from ledgerkit._refs import as_workload, resolve
from ledgerkit.costs.layout import check
from ledgerkit.costs.memory import cache_room, holdings, stage_bytes
from ledgerkit.costs.reserve import reserve_bytes
from ledgerkit.errors import CapacityError, LedgerError
from ledgerkit.spec._base import finite_number, whole_number
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.efficiency import Band
from ledgerkit.spec.engine import EngineProfile
from ledgerkit.spec.hardware import Hardware
from ledgerkit.spec.llamacpp_cache import LlamaCppCache, llamacpp_cache
from ledgerkit.spec.model import Model

__all__ = ["Capacity", "Change", "capacity"]

_GIB = 2**30
_SEATS_TRIED = (512, 256, 128, 64)
_TP_TRIED = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Change:
    """One change that makes a sequence of the wanted length fit."""

    field: str
    value: Any
    text: str


class Capacity:
    """What a deployment holds. Made by ``lk.capacity``.

    Attributes
    ----------
    pool_bytes : Band
        Bytes of one device for the cache. Exact when given, else estimated: what activations,
        graphs and buffers leave, with a band.
    kinds : list of LayerKind
        What the layers of one device keep.
    """

    def __init__(
        self,
        model: Model,
        hardware: Hardware,
        deployment: Deployment,
        profile: EngineProfile,
        pool_bytes: Band,
        *,
        pool_given: bool,
        max_model_len: int,
    ) -> None:
        self.model, self.hardware = model, hardware
        self.deployment, self.profile = deployment, profile
        self.pool_bytes = pool_bytes
        self.basis: Literal["exact", "estimated"] = "exact" if pool_given else "estimated"
        self.max_model_len = max_model_len
        self.kinds: list[LayerKind] = layer_kinds(model, deployment)
        self._batched = deployment.max_num_batched_tokens or profile.max_num_batched_tokens

    def __repr__(self) -> str:
        size = self.pool_bytes.mid / _GIB
        pool = f"pool {size:.2f} GiB per device" if size > 0 else f"no pool, {-size:.2f} GiB short"
        return (
            f"Capacity({self.model.slug} on {self.deployment.devices} x {self.hardware.slug}, "
            f"{self.profile.slug}: {pool} ({self.basis}), {self.resident_tokens:,} tokens, at most "
            f"{self.max_concurrency():.2f} sequences of {self.max_model_len:,})"
        )

    # ideal ------------------------------------------------------------------------------------

    def ideal_bytes(self, tokens: int, devices: Literal["one", "replica"] = "one") -> float:
        """Live bytes of one sequence.

        Parameters
        ----------
        tokens : int
        devices : {"one", "replica"}
            On the fullest device, or without any copies in the whole replica.
        """
        _whole("tokens", tokens, 0)
        if devices not in ("one", "replica"):
            raise CapacityError("unknown devices", given=devices, allowed="one, replica",
                                fix="use devices='replica'")  # fmt: skip
        if devices == "replica":
            return self.model.cache_bytes(tokens, self.deployment.kv_dtype)
        return sum(kind.sequence_bytes(tokens) for kind in self.kinds)

    @property
    def bytes_per_token(self) -> float:
        """Bytes on one device that each further token adds for ever."""
        return sum(k.layers * k.token_bytes for k in self.kinds if k.window is None)

    # reserved ---------------------------------------------------------------------------------

    @cached_property
    def pools(self) -> SplitPools | None:
        """Pools of their own for windows and states; None where all layers share one of pages."""
        windows, states = self.profile.window_pool_ratio, self.profile.state_pool_ratio
        if windows is None or states is None:
            return None
        return SplitPools.of(self.kinds, windows, states)

    @cached_property
    def plan(self) -> PagePlan:
        """Blocks and groups of a shared pool of pages."""
        return page_plan(self.kinds, self.deployment.block_size or self.profile.block_size)

    @property
    def block_bytes(self) -> float:
        """Bytes of one block on one device."""
        if self.pools is not None:
            return (self.deployment.block_size or self.profile.block_size) * self.bytes_per_token
        return self.plan.block_bytes

    @property
    def num_blocks(self) -> int:
        """Blocks of the pool of one device."""
        if self.pools is not None:
            page = self.deployment.block_size or self.profile.block_size
            return self.pools.tokens(self.pool_bytes.mid) // page
        return max(0, self.plan.num_blocks(self.pool_bytes.mid))

    def reserved_bytes(self, tokens: int) -> float:
        """Bytes of one device that the engine sets aside for one sequence of this length."""
        _whole("tokens", tokens, 0)
        if self.profile.cache_allocation == "contiguous":
            return self.ideal_bytes(max(tokens, self.max_model_len))
        if self.pools is not None:
            page = self.deployment.block_size or self.profile.block_size
            return self.ideal_bytes(math.ceil(tokens / page) * page)
        return self.plan.blocks_of(tokens, self._batched) * self.block_bytes

    @cached_property
    def resident_tokens(self) -> int:
        """Most tokens of a single sequence that the pool holds."""
        if self.profile.cache_allocation == "contiguous":
            return self._longest_contiguous(self.pool_bytes.mid)
        if self.pools is not None:
            return self.pools.longest(self.pool_bytes.mid, self.model.max_position_embeddings)
        return self.plan.longest(self.num_blocks, self._batched)

    def _longest_contiguous(self, pool: float) -> int:
        low, high = 0, 1 << 40
        if self.ideal_bytes(high) <= pool:
            return self.model.max_position_embeddings
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.ideal_bytes(middle) <= pool else (low, middle - 1)
        return low

    def max_concurrency(self, tokens: int | None = None) -> float:
        """Sequences of this length that the pool of one attention rank holds at once.

        A fraction, as vLLM prints it; the seats of the scheduler are not counted here.
        """
        if tokens is None:
            tokens = self.max_model_len
        _whole("tokens", tokens, 1)
        return self._concurrency(tokens, self.pool_bytes.mid)

    def _concurrency(self, tokens: int, pool: float) -> float:
        if self.profile.cache_allocation == "contiguous":
            need = self.ideal_bytes(max(tokens, self.max_model_len))
            return max(0.0, pool) / need if need else math.inf
        if self.pools is not None:
            return self.pools.concurrency(pool, tokens)
        blocks = self.plan.blocks_of(tokens, self._batched)
        return max(0, self.plan.num_blocks(pool)) / blocks

    def swap_blocks(self, swap_bytes: float) -> int:
        """Blocks that this much host memory holds for one device."""
        finite_number(CapacityError, "swap_bytes", swap_bytes)
        return math.floor(swap_bytes / self.block_bytes)

    def transfer_bytes(self, prompt_tokens: int) -> float:
        """Bytes that a hand-over of one prefilled prompt moves, copies on ranks included.

        Engines move whole blocks, and the first output token has a slot already.
        """
        _whole("prompt_tokens", prompt_tokens, 1)
        page = self.plan.block if self.pools is None else 1
        blocks = math.ceil((prompt_tokens + 1) / page)
        tokens = blocks * page if page > 1 else prompt_tokens
        per_device = sum(k.sequence_bytes(tokens) for k in self.kinds)
        return per_device * self.deployment.tp * self.deployment.pp

    # printed ----------------------------------------------------------------------------------

    @property
    def printed_tokens(self) -> dict[str, int]:
        """Tokens that the engine's log states for the pool, by the rule of its version.

        vLLM counted as if every layer kept every token (blocks of one group); later versions
        print concurrency times the longest sequence.
        """
        if self.profile.slug == "vllm":
            groups = sum(group.groups for group in self.plan.groups)
            return {
                "vllm_blocks_of_a_group": self.num_blocks // groups * self.plan.block,
                "vllm_concurrency_times_length": int(self.max_concurrency() * self.max_model_len),
            }
        if self.pools is not None:
            found = {self.profile.slug: self.pools.tokens(self.pool_bytes.mid)}
            slots = self.pools.slots(self.pool_bytes.mid)
            return found if slots is None else found | {"states": slots}
        return {self.profile.slug: int(self.pool_bytes.mid // self.bytes_per_token)
                if self.bytes_per_token else 0}  # fmt: skip

    @property
    def printed(self) -> tuple[str, ...]:
        """Lines as the engine would log them; exact only for a given pool."""
        tokens = self.printed_tokens
        if self.profile.slug == "vllm":
            older, later = tokens.values()
            length = f"{self.max_model_len:,} tokens per request"
            return (
                f"GPU KV cache size: {older:,} tokens (older versions: blocks of one group)",
                f"GPU KV cache size: {later:,} tokens (later versions: concurrency x length)",
                f"Maximum concurrency for {length}: {self.max_concurrency():.2f}x",
            )
        if self.profile.slug == "llama.cpp":
            return tuple(buffer.line for buffer in self.llamacpp().buffers)
        pool = f"{self.pool_bytes.mid / _GIB:.2f} GiB per device"
        return (f"KV cache: {tokens[self.profile.slug]:,} tokens, {pool}",)

    def llamacpp(self, **settings: Any) -> LlamaCppCache:
        """Buffers of a llama.cpp context; settings as in its command line.

        The compute buffer is known for a CPU only: a device of the family ``cpu``.
        """
        kind = {"bf16": "bf16", "fp16": "f16"}.get(
            self.deployment.kv_dtype, self.deployment.kv_dtype
        )
        defaults: dict[str, Any] = {"n_ctx": self.max_model_len}
        defaults |= {"cache_type_k": kind, "cache_type_v": kind}
        known = [*inspect.signature(llamacpp_cache).parameters][1:]
        unknown = sorted(set(settings) - set(known))
        if unknown:
            raise CapacityError(f"llama.cpp has no setting {unknown[0]!r} here",
                                given=settings[unknown[0]], allowed=", ".join(known),
                                fix=f"leave {unknown[0]} out")  # fmt: skip
        cache = llamacpp_cache(self.model, **(defaults | settings))
        on_cpu = self.hardware.family == "cpu"
        return cache if on_cpu else cache.model_copy(update={"compute_bytes": None})

    # limits -----------------------------------------------------------------------------------

    def fits(self, tokens: int | None = None) -> Literal["yes", "no", "uncertain"]:
        """Whether one sequence of this length fits, at both ends of the pool's band."""
        wanted = self.max_model_len if tokens is None else tokens
        _whole("tokens", wanted, 1)
        if self._concurrency(wanted, self.pool_bytes.low) >= 1:
            return "yes"
        return "uncertain" if self._concurrency(wanted, self.pool_bytes.high) >= 1 else "no"

    @property
    def binds(self) -> Literal["weights", "cache", "seats"]:
        """What limits the number of sequences: weights, cache, or the scheduler's seats."""
        if self.pool_bytes.mid <= 0 or self.max_concurrency() < 1:
            return "weights" if self.pool_bytes.mid <= self.ideal_bytes(1) else "cache"
        seats = self.deployment.max_num_seqs or self.profile.max_num_seqs
        return "seats" if self.max_concurrency() >= seats else "cache"

    def _with(self, **changes: Any) -> Capacity | None:
        fields = self.deployment.model_dump() | {"max_model_len": self.max_model_len} | changes
        try:
            return capacity(self.model, self.hardware, Deployment(**fields))
        except LedgerError:
            return None

    @cached_property
    def smallest_tp(self) -> int | None:
        """Fewest tensor-parallel ranks that hold one sequence of the longest length for sure."""
        for tp in _TP_TRIED:
            found = self._with(tp=tp, ep=math.gcd(self.deployment.ep, tp))
            if found is not None and found.fits() == "yes":
                return tp
        return None

    def changes(self) -> Iterator[Change]:
        """Changes that make the longest sequence fit, cheapest first."""
        if self.fits() == "yes":
            return
        seats = self.deployment.max_num_seqs or self.profile.max_num_seqs
        if self.profile.workspace is not None:
            for fewer in (one for one in _SEATS_TRIED if one < seats):
                found = self._with(max_num_seqs=fewer)
                if found is not None and found.fits() == "yes":
                    yield Change("max_num_seqs", fewer, f"max_num_seqs={fewer}: the engine keeps "
                                 "less for sampling")  # fmt: skip
                    break
        shorter = self.resident_tokens
        if shorter >= self.max_model_len // 4:
            yield Change("max_model_len", shorter, f"max_model_len={shorter} instead of "
                         f"{self.max_model_len}: the pool holds that much")  # fmt: skip
        for field, value in (("kv_dtype", "fp8"), ("weights", "fp8"), ("weights", "int4_g128")):
            if getattr(self.deployment, field) == value:
                continue
            found = self._with(**{field: value})
            if found is not None and found.fits() == "yes":
                yield Change(field, value, f"{field}={value!r}")
        if self.smallest_tp is not None and self.smallest_tp > self.deployment.tp:
            yield Change("tp", self.smallest_tp, f"tp={self.smallest_tp}")

    @property
    def cheapest_change(self) -> Change | None:
        """First of ``changes``; None when it fits, or when nothing tried makes it fit."""
        return next(self.changes(), None)


def capacity(
    model: Model | str | dict[str, Any],
    hardware: Hardware | str | dict[str, Any],
    deployment: Deployment | dict[str, Any] | None = None,
    workload: Workload | dict[str, Any] | None = None,
    *,
    pool_bytes: float | None = None,
) -> Capacity:
    """Say what a deployment holds.

    Parameters
    ----------
    model, hardware, deployment
        As in ``lk.ledger``.
    workload : Workload, optional
        Sets the length that concurrency is stated for; default ``max_model_len``.
    pool_bytes : float, optional
        Bytes of one device that the engine has for the cache, from its log. With it blocks, tokens
        and concurrency are exact; without it the pool is estimated with a band.

    Returns
    -------
    Capacity

    Raises
    ------
    LedgerError
        The layout cannot be built, or the pool is not a number of bytes.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> room = lk.capacity(
    ...     "gpt-oss-120b",
    ...     "h100-sxm-80gb",
    ...     lk.Deployment(max_model_len=131072),
    ...     pool_bytes=5.38 * 2**30,
    ... )
    >>> room.printed_tokens["vllm_blocks_of_a_group"], round(room.max_concurrency(148352), 2)
    (78336, 1.0)
    """
    model, hardware, deployment, profile, _ = resolve(model, hardware, deployment)
    check(model, deployment)
    longest = deployment.max_model_len or model.max_position_embeddings
    if workload is not None:
        longest = as_workload(workload, "a capacity").hold_context
    if pool_bytes is not None:
        pool_bytes = finite_number(CapacityError, "pool_bytes", pool_bytes, above=True)
        pool = Band(low=pool_bytes, mid=pool_bytes, high=pool_bytes)
    else:
        pool = _estimated_pool(model, hardware, deployment, profile)
    found = Capacity(model, hardware, deployment, profile, pool, pool_given=pool_bytes is not None,
                     max_model_len=longest)  # fmt: skip
    _known(found)
    return found


def _known(found: Capacity) -> None:
    """Refuse layers whose place in the engine's pool no source gives, before anything is asked."""
    if found.profile.cache_allocation == "contiguous" or found.pools is not None:
        return
    names = sorted({kind.name for kind in found.kinds if kind.window or kind.state_bytes})
    if names and not found.profile.page_groups:
        raise CapacityError(
            f"how {found.profile.name} shares its pool among such layers is not known",
            given=names, allowed="models whose layers all keep every token",
            fix="read ideal bytes: Model.cache_bytes, lk.ledger; or take another engine",
        )  # fmt: skip
    page_plan(found.kinds, found.deployment.block_size or found.profile.block_size)


def _estimated_pool(
    model: Model, hardware: Hardware, deployment: Deployment, profile: EngineProfile
) -> Band:
    """Bytes that weights and the engine's own needs leave, on the fullest device."""
    weights = max(stage_bytes(holdings(model, deployment, profile), 0, 0.0))

    def left(reserve: float) -> float:
        return cache_room(hardware, deployment, profile, weights, reserve)

    reserve = reserve_bytes(model, deployment, profile)
    return Band(low=left(reserve.high), mid=left(reserve.mid), high=left(reserve.low))


def _whole(name: str, value: int, least: int) -> None:
    whole_number(CapacityError, name, value, least)
