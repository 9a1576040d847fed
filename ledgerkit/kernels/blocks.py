"""Blocks of a paged cache with reuse: chained hashes, reference counts, least recently used first.

A block is free when nobody refers to it; a free block keeps its content, and can be found again by
its hash, until it is taken for something else. The hash of a block covers everything before it, so
that sequences share exactly their common prefix (what a radix tree does by page).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ledgerkit.kernels._jit import kernel

Ids = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
Small = npt.NDArray[np.int32]

_ODD_A = np.uint64(0x9E3779B97F4A7C15)
_ODD_B = np.uint64(0xBF58476D1CE4E5B9)
_ODD_C = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_ONE = np.uint64(1)


REFERENCES, AFTER, BEFORE = range(3)
"""Columns of ``ring``, int32[replicas, blocks + 1, 3]: the free blocks of a replica form a ring,
the oldest first; the last row is its head. ``names``, uint64[replicas, blocks], are the hashes (0 =
none); ``buckets``, int32[replicas, power of two], lead from a hash to a block + 1 (0 = none)."""


@kernel
def mix(state: np.uint64, value: np.uint64) -> np.uint64:
    """One round of splitmix64 over a state and a value."""
    z = (state ^ (value * _ODD_A)) + _ODD_A
    z = (z ^ (z >> _S30)) * _ODD_B
    z = (z ^ (z >> _S27)) * _ODD_C
    return z ^ (z >> _S31)


@kernel
def uniform(seed: int, a: int, b: int) -> float:
    """Number in [0, 1) that depends on nothing but its arguments."""
    z = mix(mix(mix(np.uint64(seed), np.uint64(1)), np.uint64(a)), np.uint64(b))
    return float(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def reset(ring: Small) -> None:
    """Make all blocks free, in order."""
    blocks = ring.shape[1] - 1
    for r in range(ring.shape[0]):
        for i in range(blocks + 1):
            ring[r, i, AFTER] = i + 1 if i < blocks else 0
            ring[r, i, BEFORE] = i - 1 if i > 0 else blocks


@kernel
def find(names: Keys, buckets: Small, r: int, key: np.uint64) -> int:
    """Block with this content; -1 = none."""
    mask = np.uint64(buckets.shape[1] - 1)
    at = key & mask
    while True:
        block = int(buckets[r, at])
        if block == 0:
            return -1
        if names[r, block - 1] == key:
            return block - 1
        at = (at + _ONE) & mask


@kernel
def take(
    ring: Small, names: Keys, buckets: Small, table: Small, r: int, slot: int, first: int, last: int
) -> None:
    """Take the blocks that were free for the longest time, as ``first`` to ``last`` of a slot.

    Their content is lost. Calls between kernels cost more than all this, so it is one piece; they
    leave the ring together.
    """
    mask = np.uint64(buckets.shape[1] - 1)
    head = ring.shape[1] - 1
    none = np.uint64(0)
    after = int(ring[r, head, AFTER])
    for j in range(first, last):
        block = after
        after = int(ring[r, block, AFTER])
        ring[r, block, REFERENCES] = 1
        table[r, slot, j] = block
        if names[r, block] == none:
            continue
        # out of the table; later ones move up, so that searches still end
        hole = names[r, block] & mask
        while buckets[r, hole] != block + 1:
            hole = (hole + _ONE) & mask
        at = hole
        while True:
            at = (at + _ONE) & mask
            other = buckets[r, at]
            if other == 0:
                break
            home = names[r, other - 1] & mask
            if ((at - home) & mask) >= ((at - hole) & mask):
                buckets[r, hole] = other
                hole = at
        buckets[r, hole] = 0
        names[r, block] = none
    ring[r, head, AFTER] = after
    ring[r, after, BEFORE] = head


@kernel
def share(ring: Small, r: int, block: int) -> int:
    """Refer to a block that was found; returns 1 if it was free."""
    was_free = 0
    if ring[r, block, REFERENCES] == 0:
        a, b = ring[r, block, BEFORE], ring[r, block, AFTER]
        ring[r, a, AFTER] = b
        ring[r, b, BEFORE] = a
        was_free = 1
    ring[r, block, REFERENCES] += 1
    return was_free


@kernel
def release(ring: Small, table: Small, r: int, slot: int, count: int) -> int:
    """Stop referring to the blocks of a slot, last first; returns how many are free now."""
    head = ring.shape[1] - 1
    freed = 0
    last = int(ring[r, head, BEFORE])
    for j in range(count - 1, -1, -1):
        block = int(table[r, slot, j])
        left = ring[r, block, REFERENCES] - 1
        ring[r, block, REFERENCES] = left
        if left == 0:
            ring[r, last, AFTER] = block
            ring[r, block, BEFORE] = last
            last = block
            freed += 1
    ring[r, last, AFTER] = head
    ring[r, head, BEFORE] = last
    return freed


@kernel
def publish(
    names: Keys, buckets: Small, table: Small, segments: Ids, cursor: Ids, r: int, slot: int,
    first: int, last: int, size: int, end: int, answer: int, chain: np.uint64,
) -> np.uint64:  # fmt: skip
    """Let others find blocks ``first`` to ``last`` of a slot; returns the hash of the last one.

    A block whose content is known already stays without a hash.
    """
    mask = np.uint64(buckets.shape[1] - 1)
    for j in range(first, last):
        at, offset = cursor[0], cursor[1]
        if at >= end or segments[at, 1] - offset > size:
            # inside one segment, or the answer: as next_key, without the call
            content = segments[at, 0] if at < end else answer
            z = (chain ^ (np.uint64(content) * _ODD_A)) + np.uint64(offset) * _ODD_B
            z = (z ^ (z >> _S30) ^ np.uint64(size)) * _ODD_C
            chain = (z ^ (z >> _S27)) | _ONE
            cursor[1] = offset + size
        else:
            chain = next_key(size, cursor, chain, end, segments, answer)
        block = table[r, slot, j]
        place = chain & mask
        known = False
        while buckets[r, place] != 0:
            if names[r, buckets[r, place] - 1] == chain:
                known = True
                break
            place = (place + _ONE) & mask
        if not known:
            buckets[r, place] = block + 1
            names[r, block] = chain
    return chain


@kernel
def next_key(
    size: int, cursor: Ids, chain: np.uint64, last: int, segments: Ids, answer: int
) -> np.uint64:
    """Hash of the next block of a sequence, chained to the blocks before.

    ``cursor[2]`` holds the segment and the offset in it, and moves on by ``size`` tokens; after the
    ``last`` segment of the prompt comes the answer, which has no end. ``segments`` is int64[n, 2]:
    content and tokens.
    """
    state = chain
    rest = size
    while rest > 0:
        at, offset = cursor[0], cursor[1]
        content, length = answer, rest
        if at < last:
            content = segments[at, 0]
            length = min(rest, segments[at, 1] - offset)
        z = (state ^ (np.uint64(content) * _ODD_A)) + np.uint64(offset) * _ODD_B
        z = (z ^ (z >> _S30) ^ np.uint64(length)) * _ODD_C
        state = z ^ (z >> _S27)
        rest -= length
        cursor[1] = offset + length
        if at < last and cursor[1] == segments[at, 1]:
            cursor[0] = at + 1
            cursor[1] = 0
    return state | _ONE
