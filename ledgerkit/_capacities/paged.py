"""Paged pools: blocks, groups of layers, tokens and seats (vLLM, SGLang, TensorRT-LLM).

vLLM puts layers that keep the same tokens into groups of equal size, so that one page serves one
layer of every group. Its rules, versioned by what they were read from:

* group size = the smallest count of a kind, or the largest if that is under 1.5 times as many;
  every kind is padded to a multiple;
* smaller pages grow to the largest one by a larger block, where it divides;
* with recurrent states, the block grows until a page of attention holds a state;
* a window reserves the pages of ``window − 1 + max_num_batched_tokens`` tokens, plus one.

Source: vllm-project/vllm@001cabc:vllm/v1/core/kv_cache_utils.py and v1/kv_cache_interface.py.
Worked: Qwen3.5-35B-A3B gets blocks of 1,056 tokens, Qwen3.5-27B of 784.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ledgerkit._capacities.kinds import LayerKind, compressed_layers
from ledgerkit.errors import CapacityError

_GROUP_SLACK = 1.5


@dataclass(frozen=True, slots=True)
class PageGroup:
    """Groups of layers of one kind: each takes pages of its own for every sequence."""

    kind: LayerKind
    groups: int
    block: int
    """Tokens of one page."""

    def pages(self, tokens: int, batched: int) -> int:
        """Pages that one sequence of this length takes at its peak, in all groups."""
        if self.kind.state_bytes:
            return self.groups
        if self.kind.window is None:
            return self.groups * math.ceil(tokens / self.block)
        held = min(self.kind.window - 1 + batched, tokens)
        return self.groups * (math.ceil(held / self.block) + 1)


@dataclass(frozen=True, slots=True)
class PagePlan:
    """How a pool is cut into blocks."""

    groups: tuple[PageGroup, ...]
    block: int
    """Tokens of a block of the layers that keep all tokens: the unit of prefix-cache hits."""
    block_bytes: float
    """Bytes of one block on one device: a page in each layer of a group."""
    padded_layers: int
    """Layers that exist only to fill groups."""

    def num_blocks(self, pool_bytes: float) -> int:
        """Blocks of a pool."""
        return math.floor(pool_bytes / self.block_bytes)

    def blocks_of(self, tokens: int, batched: int) -> int:
        """Blocks that one sequence takes at its peak."""
        return sum(group.pages(tokens, batched) for group in self.groups)

    def longest(self, num_blocks: int, batched: int) -> int:
        """Most tokens of a single sequence that the blocks hold."""
        if self.blocks_of(1, batched) > num_blocks:
            return 0
        low, high = 1, max(1, num_blocks) * self.block
        while low < high:
            middle = (low + high + 1) // 2
            if self.blocks_of(middle, batched) <= num_blocks:
                low = middle
            else:
                high = middle - 1
        return low


def page_plan(kinds: list[LayerKind], block: int) -> PagePlan:
    """Cut the layers of a device into groups with pages of one size.

    Raises
    ------
    CapacityError
        The page sizes of the layers do not divide each other, or layers are compressed.
    """
    attention = [k for k in kinds if not k.state_bytes]
    if any(kind.name == "compressor" for kind in kinds):
        raise compressed_layers()
    states = [k for k in kinds if k.state_bytes]
    full = [k for k in attention if k.window is None]
    if len(full) == len(attention) and not states:
        # nothing but whole contexts: one group whose page is the sum of its layers
        size = block * sum(k.layers * k.token_bytes for k in attention)
        whole = LayerKind("all", sum(k.layers for k in attention), size / block)
        return PagePlan((PageGroup(whole, 1, block),), block, size, 0)
    if states:
        if not attention:
            state = states[0]
            return PagePlan((PageGroup(state, 1, 1),), 1, state.layers * state.state_bytes, 0)
        largest_token = max(k.token_bytes for k in attention)
        largest_state = max(k.state_bytes for k in states)
        block *= math.ceil(largest_state / (block * largest_token))
    page = max(k.token_bytes for k in attention) * block
    counts = [k.layers for k in (*attention, *states)]
    size = min(counts)
    if max(counts) < _GROUP_SLACK * size:
        size = max(counts)
    groups = []
    padded = 0
    for kind in (*attention, *states):
        number = math.ceil(kind.layers / size)
        padded += number * size - kind.layers
        own_block = block
        if not kind.state_bytes:
            ratio = page / (kind.token_bytes * block)
            if not math.isclose(ratio, round(ratio)):
                raise CapacityError(
                    "the pages of these layers do not divide each other, so the engine cannot "
                    "share a pool among them",
                    given=[k.token_bytes for k in attention],
                    allowed="page sizes that divide each other",
                )
            own_block = block * round(ratio)
        groups.append(PageGroup(kind, number, own_block))
    return PagePlan(tuple(groups), block, page * size, padded)
