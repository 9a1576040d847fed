"""Typed access to the metadata of a GGUF file.

As with the fields of a ``config.json``, a key of the architecture that nobody asks for and that is
not known to change no size is refused: it may be what makes this model different.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import NOT_GIVEN, CheckpointError, UnsupportedArchitectureError
from ledgerkit.readers.gguf_header import GgufArray, GgufTensor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Metadata"]

_MAX_SIZE = 1 << 40
_MAX_LAYERS = 4096

# angles, constants inside norms, scalar factors, routing arithmetic: no tensor, no cached element
_NEUTRAL = re.compile(
    r"""
    rope\..+ | vocab_size | context_length | tensor_data_layout | pooling_type
    | attention\.(?:layer_norm_epsilon|layer_norm_rms_epsilon|scale|clamp_kqv|max_alibi_bias
        |output_scale|temperature_length|temperature_scale)
    | (?:attn_|final_|router_)?logit_(?:softcapping|scale)
    | attn_logit_softcapping | residual_scale | embedding_scale | swiglu_clamp\w*
    | expert_(?:weights_scale|weights_norm|gating_func|group_scale)
    | activation_sparsity_scale | altup\.active_idx | features_length
    """,
    re.VERBOSE,
)


class Metadata:
    """The metadata of one model, with the tensors beside it.

    Parameters
    ----------
    values : Mapping
        All key-value pairs of the file.
    tensors : Mapping of str to GgufTensor
        All tensors by name.
    path : str
        How errors call the file.
    """

    def __init__(
        self, values: Mapping[str, Any], tensors: Mapping[str, GgufTensor], path: str
    ) -> None:
        self.values = values
        self.tensors = tensors
        self.path = path
        architecture = values.get("general.architecture")
        if not isinstance(architecture, str) or not architecture:
            raise CheckpointError(f"{path}: general.architecture is not stated",
                                  given=architecture)  # fmt: skip
        self.architecture = architecture
        self._seen: set[str] = set()

    def raw(self, key: str) -> Any:
        """Return a value unchecked, None where it is not stated."""
        self._seen.add(key)
        return self.values.get(f"{self.architecture}.{key}")

    def _error(self, key: str, what: str, given: Any = NOT_GIVEN) -> CheckpointError:
        return CheckpointError(f"{self.path}: {self.architecture}.{key} {what}", given=given)

    def has(self, key: str) -> bool:
        """Whether the key is stated."""
        return f"{self.architecture}.{key}" in self.values

    def _whole(self, key: str, value: Any, least: int, most: int = _MAX_SIZE) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._error(key, "must be a whole number", value)
        if not least <= value <= most:
            raise self._error(key, f"must be from {least} to {most}", value)
        return value

    def count(self, key: str, default: int | None = None, least: int = 0) -> int:
        """Return a whole number; a per-layer array must hold one value throughout."""
        value = self.raw(key)
        if value is None:
            if default is None:
                raise self._error(key, "is not stated", None)
            return default
        if isinstance(value, tuple):
            different = sorted(set(value))
            if len(different) != 1:
                raise UnsupportedArchitectureError(
                    f"{self.path}: {self.architecture}.{key} differs from layer to layer, which "
                    "this architecture's reader does not handle", given=different,
                )  # fmt: skip
            value = different[0]
        return self._whole(key, value, least)

    def size(self, key: str, default: int | None = None) -> int:
        """Return a whole number of 1 or more."""
        return self.count(key, default, least=1)

    def layers(self) -> int:
        """Return the number of blocks."""
        return self._whole("block_count", self.raw("block_count"), 1, _MAX_LAYERS)

    def per_layer(self, key: str, length: int, default: int | None = None) -> list[int]:
        """Return one whole number for each layer; a single number stands for all."""
        value = self.raw(key)
        if value is None and default is not None:
            value = default
        if isinstance(value, tuple):
            self._check_length(key, value, length)
            return [self._whole(key, item, 0) for item in value]
        return [self._whole(key, value, 0)] * length

    def windowed_layers(self, length: int, period: int) -> list[bool]:
        """Return which layers have the sliding window.

        Parameters
        ----------
        length : int
            Number of layers.
        period : int
            llama.cpp's own value for this architecture: every period-th layer is full.
        """
        key = "attention.sliding_window_pattern"
        value = self.raw(key)
        if isinstance(value, tuple):
            self._check_length(key, value, length)
            if not all(isinstance(item, (bool, int)) and item in (0, 1) for item in value):
                raise self._error(key, "must hold booleans", value)
            return [bool(item) for item in value]
        period = period if value is None else self._whole(key, value, 0)
        return [period == 0 or layer % period < period - 1 for layer in range(length)]

    def _check_length(self, key: str, value: Sequence[Any], length: int) -> None:
        if len(value) != length:
            raise self._error(key, f"must have {length} entries, one for each layer", len(value))

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the extents of a tensor that the model cannot be without, fastest first."""
        tensor = self.tensors.get(name)
        if tensor is None:
            raise CheckpointError(f"{self.path}: the file has no tensor {name!r}")
        return tensor.ne

    def vocab_size(self) -> int:
        """Return the rows of the embedding; the token list must not be longer."""
        ne = self.shape("token_embd.weight")
        if len(ne) != 2:
            raise CheckpointError(f"{self.path}: token_embd.weight is no matrix", given=ne)
        tokens = self.values.get("tokenizer.ggml.tokens")
        listed = tokens.length if isinstance(tokens, GgufArray) else len(tokens or ())
        if listed > ne[1]:
            raise CheckpointError(f"{self.path}: more tokens than rows of token_embd.weight",
                                  given=listed, allowed=f"at most {ne[1]}")  # fmt: skip
        return ne[1]

    def finish(self) -> None:
        """Refuse every key of the architecture that was not read and may change a size.

        Raises
        ------
        UnsupportedArchitectureError
            Names the keys.
        """
        causal = self.values.get(f"{self.architecture}.attention.causal", True)
        if causal is not True:
            raise UnsupportedArchitectureError(f"{self.path}: attention is not causal",
                                               given=causal)  # fmt: skip
        self._seen.add("attention.causal")
        prefix = f"{self.architecture}."
        unknown = {
            key: value
            for key, value in self.values.items()
            if key.startswith(prefix)
            and key.removeprefix(prefix) not in self._seen
            and not _NEUTRAL.fullmatch(key.removeprefix(prefix))
        }
        if unknown:
            raise UnsupportedArchitectureError(
                f"{self.path}: the reader of {self.architecture!r} does not know the key(s) "
                f"{', '.join(unknown)}, and they may change what the model costs", given=unknown,
            )  # fmt: skip
