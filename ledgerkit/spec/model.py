"""The model: groups of identical layers, each with its attention, its FFN and its weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr

from ledgerkit.errors import ConfigError
from ledgerkit.spec._base import LARGEST, Count, Frozen, Size
from ledgerkit.spec.attention import Attention
from ledgerkit.spec.axes import Account, Ledger
from ledgerkit.spec.cache import layer_cache_bytes
from ledgerkit.spec.feed_forward import FeedForward, MoeFfn
from ledgerkit.spec.weights import Weight

__all__ = ["LayerGroup", "Model", "Mtp"]

Reader = Callable[[Mapping[str, Any]], "Model"]


class LayerGroup(Frozen):
    """Layers that are equal in every respect that costs anything."""

    layers: tuple[Count, ...] = Field(min_length=1)
    """0-based layer indices."""
    attention: Attention
    ffn: FeedForward
    weights: tuple[Weight, ...]
    """The tensors of one layer."""

    @property
    def count(self) -> int:
        """Number of layers."""
        return len(self.layers)


class Mtp(Frozen):
    """Multi-token-prediction blocks: stored beside the model, used only for speculation."""

    num_layers: Size
    group: LayerGroup
    """One block as a decoder layer; ``layers`` are its indices in the checkpoint."""
    extra: tuple[Weight, ...] = ()
    """Tensors of one block outside its decoder layer (projection, norms)."""

    @property
    def parameter_count(self) -> int:
        """Elements of all blocks, shared embedding and head not counted."""
        one = sum(w.elements for w in (*self.group.weights, *self.extra))
        return self.num_layers * one


class Model(Frozen):
    """A Transformer as the ledgers see it.

    Built by ``lk.load_model``; nothing in it is measured, everything follows from the config.
    """

    slug: str
    name: str
    model_type: str
    source: str
    """Public address of the config, or the path that was read."""
    fidelity: str = "as given"
    inferred: tuple[str, ...] = ()
    """Fields that the source did not state."""
    hidden_size: Size
    vocab_size: Size
    max_position_embeddings: Size
    tie_word_embeddings: bool
    dtype: str
    """Dtype of the unquantized tensors."""
    quantization: str = "none"
    """What the checkpoint's quantization is called, e.g. ``fp8 128x128 block``."""
    groups: tuple[LayerGroup, ...] = Field(min_length=1)
    globals: tuple[Weight, ...]
    """Tensors outside the layers: embedding, final norm, head, per-layer embedding tables."""
    mtp: Mtp | None = None
    other_parameters: tuple[tuple[str, int | None], ...] = ()
    """Towers outside the three ledgers, e.g. ``("vision", 417_000_000)``; None = not counted."""
    notes: tuple[str, ...] = ()
    """What the reader assumed or left out, in words."""

    _config: Mapping[str, Any] | None = PrivateAttr(default=None)
    _reader: Reader | None = PrivateAttr(default=None)

    def __repr__(self) -> str:
        return (
            f"Model({self.slug!r}, {self.num_hidden_layers} layers, "
            f"{self.parameter_count:,} parameters)"
        )

    __str__ = __repr__

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.slug, self.hidden_size, self.groups, self.globals))

    @cached_property
    def num_hidden_layers(self) -> int:
        """Decoder layers, MTP blocks not counted."""
        return sum(group.count for group in self.groups)

    def booked_weights(self) -> Iterator[tuple[Weight, int]]:
        """Yield every weight class of the model without MTP, with the number of its layers."""
        for weight in self.globals:
            yield weight, 1
        for group in self.groups:
            for weight in group.weights:
                yield weight, group.count

    @cached_property
    def parameters(self) -> dict[tuple[Ledger, Account], int]:
        """Elements by (ledger, account); sums to ``parameter_count``."""
        books: dict[tuple[Ledger, Account], int] = {}
        for weight, count in self.booked_weights():
            key = (weight.ledger, weight.account)
            books[key] = books.get(key, 0) + weight.elements * count
        return books

    @cached_property
    def parameter_count(self) -> int:
        """Elements of the text model's checkpoint without MTP; a tied table counts once."""
        return sum(self.parameters.values())

    @cached_property
    def _active(self) -> tuple[int, int, int]:
        """Active elements: (all, input embedding, head)."""
        total = embedding = head = 0
        for group in self.groups:
            for weight in group.weights:
                elements = weight.elements * group.count
                if weight.routed and isinstance(group.ffn, MoeFfn):
                    elements = elements // group.ffn.num_experts * group.ffn.num_experts_per_tok
                total += elements
        for weight in self.globals:
            total += weight.elements
            if weight.use == "lookup" and weight.split == "vocab":  # learned positions stay active
                embedding += weight.elements
            elif weight.use == "head":
                head += weight.elements
        return total, embedding, head

    @property
    def active_parameter_count(self) -> int:
        """Elements that a token uses, input embedding left out (a tied table is the head)."""
        total, embedding, _ = self._active
        return total - embedding

    @property
    def active_parameter_count_with_embedding(self) -> int:
        """Elements that a token uses, the whole input embedding counted as used."""
        return self._active[0]

    @property
    def active_parameter_count_without_vocab(self) -> int:
        """Elements that a token uses, without input embedding and head."""
        total, embedding, head = self._active
        return total - embedding - head

    @cached_property
    def weight_bytes(self) -> float:
        """Bytes of the checkpoint without MTP, scales included."""
        return sum(weight.bytes * count for weight, count in self.booked_weights())

    @cached_property
    def weight_bytes_by_account(self) -> dict[tuple[Ledger, Account], float]:
        """Stored bytes by (ledger, account); sums to ``weight_bytes``."""
        books: dict[tuple[Ledger, Account], float] = {}
        for weight, count in self.booked_weights():
            key = (weight.ledger, weight.account)
            books[key] = books.get(key, 0.0) + weight.bytes * count
        return books

    def cache_bytes(
        self,
        context: int,
        kv_dtype: str = "bf16",
        indexer_dtype: str | None = None,
        state_dtype: str | None = None,
        conv_columns: Literal["engine", "transformers"] = "engine",
    ) -> float:
        """Peak live bytes of one sequence that reaches ``context`` tokens.

        Parameters
        ----------
        context : int
            Tokens; a windowed layer keeps ``min(context, window)`` of them.
        kv_dtype : str
            Layout of keys, values and latents: ``bf16``, ``fp16``, ``fp8``, ``fp8_ds_mla`` ...
        indexer_dtype : str, optional
            Layout of index keys; None = the one of ``kv_dtype``.
        state_dtype : str, optional
            Dtype of recurrent states; None = the config's own.
        conv_columns : {"engine", "transformers"}
            Whether the convolution keeps kernel − 1 columns or all of them.

        Returns
        -------
        float
            Bytes.

        Examples
        --------
        >>> import ledgerkit as lk
        >>> lk.load_model("llama-3.1-8b").cache_bytes(1)
        131072.0
        """
        if type(context) is not int or not 0 <= context <= LARGEST:
            raise ConfigError("context must be a whole number of tokens", given=context,
                              allowed=f"0 to {LARGEST}", fix="count in tokens")  # fmt: skip
        return float(
            sum(
                group.count
                * layer_cache_bytes(
                    group.attention, context, kv_dtype, indexer_dtype, state_dtype, conv_columns
                )
                for group in self.groups
            )
        )

    def kv_bytes_per_token(self, kv_dtype: str = "bf16", indexer_dtype: str | None = None) -> float:
        """Bytes that each further token adds for ever: windows and states do not count.

        So it is 0 where every layer has a window, however long: Phi-3.5's is longer than its
        context. ``cache_bytes(context)`` is the size at a length.

        Examples
        --------
        >>> import ledgerkit as lk
        >>> lk.load_model("llama-3.1-8b").kv_bytes_per_token()
        131072.0
        >>> phi = lk.load_model("phi-3.5-mini-instruct")
        >>> phi.kv_bytes_per_token(), phi.cache_bytes(1)
        (0.0, 393216.0)
        """
        longest = 1 << 40  # far beyond every window
        grown = self.cache_bytes(2 * longest, kv_dtype, indexer_dtype)
        return (grown - self.cache_bytes(longest, kv_dtype, indexer_dtype)) / longest

    def replace(self, **fields: Any) -> Self:
        """Return a variant with other config fields, read by the same reader.

        Parameters
        ----------
        **fields
            Fields of the text config, e.g. ``num_hidden_layers=30``, ``sliding_window=None``.

        Raises
        ------
        ConfigError
            The model was not read from a config, or the variant is not valid.
        """
        if self._config is None or self._reader is None:
            raise ConfigError(
                "this model was not read from a config, so it has no fields to replace",
                given=self.slug, allowed="models of lk.load_model",
                fix="read the model from its config",
            )  # fmt: skip
        if not fields:
            return self
        return self._reader({**self._config, "_replace": fields})  # type: ignore[return-value]
