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
def publish(names: Keys, buckets: Small, r: int, block: int, key: np.uint64) -> None:
    """Let others find a block, unless another block has this content already."""
    mask = np.uint64(buckets.shape[1] - 1)
    at = key & mask
    while buckets[r, at] != 0:
        if names[r, buckets[r, at] - 1] == key:
            return
        at = (at + _ONE) & mask
    buckets[r, at] = block + 1
    names[r, block] = key


@kernel
def _forget(names: Keys, buckets: Small, r: int, block: int) -> None:
    """Take a block out of the table; later ones move up, so that searches still end."""
    mask = np.uint64(buckets.shape[1] - 1)
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
    names[r, block] = np.uint64(0)


@kernel
def _unlink(ring: Small, r: int, block: int) -> None:
    a, b = ring[r, block, BEFORE], ring[r, block, AFTER]
    ring[r, a, AFTER] = b
    ring[r, b, BEFORE] = a


@kernel
def take(ring: Small, names: Keys, buckets: Small, r: int) -> int:
    """Take the block that was free for the longest time; its content is lost."""
    block = int(ring[r, ring.shape[1] - 1, AFTER])
    _unlink(ring, r, block)
    if names[r, block] != np.uint64(0):
        _forget(names, buckets, r, block)
    ring[r, block, REFERENCES] = 1
    return block


@kernel
def share(ring: Small, r: int, block: int) -> int:
    """Refer to a block that was found; returns 1 if it was free."""
    was_free = 0
    if ring[r, block, REFERENCES] == 0:
        _unlink(ring, r, block)
        was_free = 1
    ring[r, block, REFERENCES] += 1
    return was_free


@kernel
def release(ring: Small, r: int, block: int) -> int:
    """Stop referring to a block; the last to do so makes it free. Returns 1 if it is."""
    ring[r, block, REFERENCES] -= 1
    if ring[r, block, REFERENCES] > 0:
        return 0
    head = ring.shape[1] - 1
    last = ring[r, head, BEFORE]
    ring[r, last, AFTER] = block
    ring[r, block, BEFORE] = last
    ring[r, block, AFTER] = head
    ring[r, head, BEFORE] = block
    return 1


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
        state = mix(mix(mix(state, np.uint64(content)), np.uint64(offset)), np.uint64(length))
        rest -= length
        cursor[1] = offset + length
        if at < last and cursor[1] == segments[at, 1]:
            cursor[0] = at + 1
            cursor[1] = 0
    return state | _ONE
