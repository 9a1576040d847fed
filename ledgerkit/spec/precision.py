"""Storage formats: how many bytes a tensor takes, scales included, and what it computes in.

A format is named as engines name it (``bf16``, ``fp8_block128``, ``int4_g32``, ``mxfp4`` ...). Its
size depends on the shape of the tensor, because scales come per block: a 128×128-block fp8 matrix
of 100×100 still has one whole scale.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Literal

from ledgerkit.errors import UnsupportedDtypeError
from ledgerkit.spec._base import Frozen
from ledgerkit.spec.ggml import GGML_STORAGE, GgmlType

ComputeClass = Literal["fp32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"]


class Storage(Frozen):
    """A storage format.

    Examples
    --------
    >>> storage("mxfp4").bytes((2880, 2880))
    4406400.0
    >>> storage("fp8_block128").bytes((7168, 2048))
    14683648.0
    """

    name: str
    bits: float
    """Bits of one element, without scales."""
    block: tuple[int, int] | None = None
    """Rows and columns that share one scale; None = no block scales; 0 = the whole axis."""
    scale_bytes: float = 0.0
    """Bytes of the scale (and zero point) of one block."""
    tensor_bytes: float = 0.0
    """Bytes added once per tensor (a per-tensor scale)."""
    column_bytes: float = 0.0
    """Bytes added once per column (the group index of GPTQ)."""
    compute: ComputeClass = "bf16"
    """The dtype class of the matrix unit that a matching device multiplies this format in."""

    def bytes(self, shape: tuple[int, ...]) -> float:
        """Bytes of one tensor of this shape; leading axes beyond two are batched tensors.

        Parameters
        ----------
        shape : tuple of int
            As stored, rows = outputs, columns = inputs. A vector counts as one row.
        """
        rows, columns = (1, shape[0]) if len(shape) == 1 else (shape[-2], shape[-1])
        batch = math.prod(shape[:-2]) if len(shape) > 2 else 1
        size = rows * columns * self.bits / 8 + columns * self.column_bytes + self.tensor_bytes
        if self.block is not None:
            block_rows, block_columns = self.block[0] or rows, self.block[1] or columns
            size += (
                math.ceil(rows / block_rows) * math.ceil(columns / block_columns) * self.scale_bytes
            )
        return batch * size


_NAMED = {
    fmt.name: fmt
    for fmt in (
        Storage(name="fp32", bits=32, compute="fp32"),
        Storage(name="int64", bits=64, compute="fp32"),
        Storage(name="int32", bits=32, compute="fp32"),
        Storage(name="bf16", bits=16),
        Storage(name="fp16", bits=16, compute="fp16"),
        Storage(name="fp8", bits=8, tensor_bytes=4, compute="fp8"),
        Storage(name="fp8_channel", bits=8, block=(1, 0), scale_bytes=4, compute="fp8"),
        Storage(name="fp8_block128", bits=8, block=(128, 128), scale_bytes=4, compute="fp8"),
        Storage(name="fp8_block128_e8m0", bits=8, block=(128, 128), scale_bytes=1, compute="fp8"),
        # scales in the dtype of the model, as compressed-tensors stores them
        Storage(name="fp8_bf16scale", bits=8, tensor_bytes=2, compute="fp8"),
        Storage(name="fp8_channel_bf16scale", bits=8, block=(1, 0), scale_bytes=2, compute="fp8"),
        Storage(
            name="fp8_block128_bf16scale", bits=8, block=(128, 128), scale_bytes=2, compute="fp8"
        ),
        Storage(name="int8_bf16scale", bits=8, block=(1, 0), scale_bytes=2, compute="int8"),
        # one fp32 scale of the inputs beside the one of the weights
        Storage(name="fp8_static", bits=8, tensor_bytes=8, compute="fp8"),
        Storage(
            name="nvfp4_static", bits=4, block=(1, 16), scale_bytes=1, tensor_bytes=8, compute="fp4"
        ),
        # bitsandbytes: one fp32 scale for 64 elements, or one byte and one fp32 for 256 of those;
        # with the code book(s) of each tensor
        Storage(name="nf4", bits=4, block=(1, 64), scale_bytes=4, tensor_bytes=64),
        Storage(
            name="nf4_double", bits=4, block=(1, 64), scale_bytes=1 + 4 / 256, tensor_bytes=1088
        ),
        Storage(name="mxfp8", bits=8, block=(1, 32), scale_bytes=1, compute="fp8"),
        Storage(name="int8", bits=8, block=(1, 0), scale_bytes=4, compute="int8"),
        Storage(name="mxfp4", bits=4, block=(1, 32), scale_bytes=1, compute="fp4"),
        Storage(name="nvfp4", bits=4, block=(1, 16), scale_bytes=1, tensor_bytes=4, compute="fp4"),
    )
}
_GROUPED = re.compile(
    r"int(?P<bits>[2-8])(?P<asymmetric>_asym)?_(?:g(?P<group>[1-9]\d*)|channel)(?P<index>_gidx)?$"
)

_ROW_TYPES: dict[str, str] = {
    **dict.fromkeys(("tq1_0", "tq2_0"), "q4_0"),
    **dict.fromkeys(("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "q2_k",
                     "q3_k", "iq4_xs"), "iq4_nl"),
    "q4_k": "q5_0", "q5_k": "q5_1", "q6_k": "q8_0",
}  # fmt: skip
"""In what llama-quantize keeps a matrix whose rows are no whole blocks of the type asked for
(llama.cpp, ``src/llama-quant.cpp``); rows that the second does not fit either stay fp16."""
_NOT_OF_WEIGHTS = ("int64", "int32", "i16", "i8", "f64", "q8_1", "q8_k")
"""Formats of indices, and of what ggml multiplies weights with."""

WEIGHT_DTYPES = ("bf16", "fp16", "fp8", "fp8_block128", "int8", "int4_g128", "int4_g32", "mxfp4",
                 "nvfp4")  # fmt: skip
"""What ``Deployment.weights`` and ``Deployment.experts`` accept as the common cases; any
``int<bits>[_asym]_g<group>`` is accepted too."""


@lru_cache(maxsize=256)
def storage(name: str) -> Storage:
    """Look a storage format up by name.

    ``int4_g32`` is 4-bit integers with one bf16 scale for each 32 inputs; ``_asym`` adds a zero
    point of the same width as the elements, ``_channel`` has one scale per row, ``_gidx`` the group
    index of GPTQ. The types of GGUF files have llama.cpp's names in
    lower case (``q4_k``, ``iq2_xxs`` ...); its nvfp4 is ``nvfp4_ggml``, because there the scale of
    the tensor is a tensor of its own.

    Raises
    ------
    UnsupportedDtypeError
        The name is no known format.

    Examples
    --------
    >>> storage("int4_g128").bytes((1, 128)) / 128
    0.515625
    >>> storage("int4_asym_g128").bytes((1, 128)) / 128
    0.51953125
    """
    found = _NAMED.get(name)
    if found is not None:
        return found
    ggml = GGML_STORAGE.get(name)
    if ggml is not None:
        return _from_ggml(ggml)
    match = _GROUPED.match(name)
    if match:
        bits = int(match["bits"])
        zero = bits / 8 if match["asymmetric"] else 0.0
        # W4A16 and its kin multiply in bf16: the format saves bytes, not FLOP/s
        return Storage(
            name=name, bits=bits, block=(1, int(match["group"] or 0)), scale_bytes=2 + zero,
            column_bytes=4 if match["index"] else 0,
        )  # fmt: skip
    raise UnsupportedDtypeError(
        "unknown storage format", given=name,
        allowed=", ".join(_NAMED) + ", int4_g128, int4_g32, q4_k and the other ggml types",
        fix="use one of these names",
    )  # fmt: skip


def check_weight_format(field: str, name: str) -> None:
    """Refuse what is no storage format, and formats that no engine keeps weights in.

    Raises
    ------
    UnsupportedDtypeError
        The message names the field.

    Examples
    --------
    >>> check_weight_format("weights", "int4_g128")
    """
    try:
        storage(name)
    except UnsupportedDtypeError as error:
        what = f"{field}: {error.what}"
    else:
        if name not in _NOT_OF_WEIGHTS:
            return
        what = f"{field}: {name} is no format of weights"
    raise UnsupportedDtypeError(
        what, given=name, fix=f"use {field}='bf16', or leave it out",
        allowed=f"{', '.join(WEIGHT_DTYPES)}, any int<bits>_g<group>, q4_k and its kin",
    )  # fmt: skip


@lru_cache(maxsize=4096)
def kept_as(field: str, name: str, inputs: int) -> str:
    """Format of a matrix with rows of so many inputs when ``name`` is asked for.

    llama.cpp keeps rows that are no whole number of blocks in a simpler type.

    Raises
    ------
    UnsupportedDtypeError
        The rows are no whole number of blocks and there is no such type, or one group of integers
        is longer than a row. The message names the field.

    Examples
    --------
    >>> kept_as("weights", "q4_k", 4096), kept_as("weights", "q4_k", 2880)
    ('q4_k', 'q5_0')
    """
    kind, group = GGML_STORAGE.get(name), _GROUPED.match(name)
    if kind is not None and inputs % kind.block_elements:
        simpler = GGML_STORAGE.get(_ROW_TYPES.get(name, ""))
        if simpler is None and kind.storage_name not in _NAMED:
            raise UnsupportedDtypeError(
                f"{field}={name!r}: a row of {inputs} inputs is no whole number of blocks",
                given=inputs, allowed=f"rows of a multiple of {kind.block_elements} inputs",
                fix=f"use {field}='bf16' or another format",
            )  # fmt: skip
        if simpler is not None:
            return "fp16" if inputs % simpler.block_elements else simpler.storage_name
    if group and int(group["group"] or 0) > inputs:
        raise UnsupportedDtypeError(
            f"{field}={name!r}: a group is longer than a row of {inputs} inputs", given=name,
            allowed=f"groups of up to {inputs}",
            fix=f"use {field}='int{group['bits']}_channel' for one scale for each row",
        )  # fmt: skip
    return name


def _from_ggml(kind: GgmlType) -> Storage:
    """Make a storage format of a ggml type: codes, and whatever else a block holds as its scale."""
    # blocks are expanded before the matrix unit sees them: they save bytes, not FLOP/s
    compute: ComputeClass = "fp4" if kind.name == "nvfp4" else "bf16"
    scale_bytes = kind.block_bytes - kind.block_elements * kind.code_bits / 8
    block = (1, kind.block_elements) if scale_bytes else None
    return Storage(name=kind.storage_name, bits=kind.code_bits, block=block,
                   scale_bytes=scale_bytes, compute=compute)  # fmt: skip
