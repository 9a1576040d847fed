"""The tensor types of ggml (llama.cpp, GGUF): elements and bytes of a block.

A type is named in lower case as llama.cpp prints it (``q4_k``, ``iq2_xxs``, ``tq1_0`` ...). Ids and
block layouts: ggml-org/ggml@d99724f, ``include/ggml.h`` (``enum ggml_type``) and
``src/ggml-common.h`` (``block_*``). Removed types (Q4_2, Q4_3, the repacked ``q4_0_4_4`` kin) are
not listed: llama.cpp refuses files that hold them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ledgerkit.errors import UnsupportedDtypeError

__all__ = ["GGML_STORAGE", "GGML_TYPES", "GgmlType", "ggml_type", "ggml_type_by_id"]


class GgmlType(NamedTuple):
    """A ggml type.

    Examples
    --------
    >>> ggml_type("q4_k").row_bytes(4096)
    2304
    """

    id: int
    """Number in a GGUF file."""
    name: str
    block_elements: int
    """Consecutive elements of a row that share one block."""
    block_bytes: int
    """Bytes of a block: codes, scales and minima."""
    code_bits: float
    """Bits of one element, without scales and minima."""
    storage_name: str
    """Name of the same format in ``ledgerkit.spec.precision``."""

    def row_bytes(self, elements: int) -> int:
        """Bytes of one row.

        Parameters
        ----------
        elements : int
            Elements of the row (``ne[0]``); a multiple of ``block_elements``.

        Raises
        ------
        UnsupportedDtypeError
            The row is not a whole number of blocks.
        """
        if elements % self.block_elements:
            raise UnsupportedDtypeError(
                f"a row of a {self.name} tensor must be a whole number of blocks",
                given=elements, allowed=f"multiples of {self.block_elements}",
            )  # fmt: skip
        return elements // self.block_elements * self.block_bytes

    def tensor_bytes(self, ne: tuple[int, ...]) -> int:
        """Bytes of a tensor with the extents ``ne``, fastest first, as ggml orders them."""
        return self.row_bytes(ne[0]) * math.prod(ne[1:])


def _type(
    id: int,  # noqa: A002
    name: str,
    block_elements: int,
    block_bytes: int,
    code_bits: float,
    storage_name: str | None = None,
) -> GgmlType:
    return GgmlType(id, name, block_elements, block_bytes, code_bits, storage_name or name)


GGML_TYPES: tuple[GgmlType, ...] = (
    _type(0, "f32", 1, 4, 32, "fp32"),
    _type(1, "f16", 1, 2, 16, "fp16"),
    _type(2, "q4_0", 32, 18, 4),
    _type(3, "q4_1", 32, 20, 4),
    _type(6, "q5_0", 32, 22, 5),
    _type(7, "q5_1", 32, 24, 5),
    _type(8, "q8_0", 32, 34, 8),
    _type(9, "q8_1", 32, 36, 8),
    _type(10, "q2_k", 256, 84, 2),
    _type(11, "q3_k", 256, 110, 3),
    _type(12, "q4_k", 256, 144, 4),
    _type(13, "q5_k", 256, 176, 5),
    _type(14, "q6_k", 256, 210, 6),
    _type(15, "q8_k", 256, 292, 8),
    _type(16, "iq2_xxs", 256, 66, 2),
    _type(17, "iq2_xs", 256, 74, 2),
    _type(18, "iq3_xxs", 256, 98, 3),
    _type(19, "iq1_s", 256, 50, 1),
    _type(20, "iq4_nl", 32, 18, 4),
    _type(21, "iq3_s", 256, 110, 3),
    _type(22, "iq2_s", 256, 82, 2),
    _type(23, "iq4_xs", 256, 136, 4),
    _type(24, "i8", 1, 1, 8),
    _type(25, "i16", 1, 2, 16),
    _type(26, "i32", 1, 4, 32, "int32"),
    _type(27, "i64", 1, 8, 64, "int64"),
    _type(28, "f64", 1, 8, 64),
    _type(29, "iq1_m", 256, 56, 1),
    _type(30, "bf16", 1, 2, 16),
    # five ternary digits to a byte, a remainder of 16 elements at four to a byte
    _type(34, "tq1_0", 256, 54, 1.625),
    _type(35, "tq2_0", 256, 66, 2),
    _type(39, "mxfp4", 32, 17, 4),
    # four groups of 16 with an e4m3 scale each; the per-tensor scale is a tensor of its own
    _type(40, "nvfp4", 64, 36, 4, "nvfp4_ggml"),
    _type(41, "q1_0", 128, 18, 1),
    _type(42, "q2_0", 64, 18, 2),
)
"""Every type that a GGUF file may hold today."""

_BY_NAME = {kind.name: kind for kind in GGML_TYPES}
_BY_ID = {kind.id: kind for kind in GGML_TYPES}

GGML_STORAGE: dict[str, GgmlType] = {kind.storage_name: kind for kind in GGML_TYPES}
"""Types by their storage name; ``precision.storage`` builds the formats that it lacks from it."""


def ggml_type(name: str) -> GgmlType:
    """Look a type up by the name that llama.cpp prints, in lower case.

    Raises
    ------
    UnsupportedDtypeError
        ggml has no such type.

    Examples
    --------
    >>> ggml_type("q6_k").block_bytes, ggml_type("mxfp4").block_bytes
    (210, 17)
    """
    found = _BY_NAME.get(name.lower())
    if found is None:
        raise UnsupportedDtypeError("unknown ggml type", given=name, allowed=", ".join(_BY_NAME))
    return found


def ggml_type_by_id(number: int) -> GgmlType:
    """Look a type up by its number in a GGUF file.

    Raises
    ------
    UnsupportedDtypeError
        No type has this number, or it was removed from ggml.

    Examples
    --------
    >>> ggml_type_by_id(12).name
    'q4_k'
    """
    found = _BY_ID.get(number)
    if found is None:
        raise UnsupportedDtypeError(
            "unknown ggml type number", given=number,
            allowed=", ".join(str(known) for known in _BY_ID),
        )  # fmt: skip
    return found
