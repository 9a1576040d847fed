"""Attention kinds: what a layer keeps of the past, and how large that is.

Element counts live here; FLOP and traffic live in ``ledgerkit.costs``. All sizes are for one
layer and one sequence.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ledgerkit.spec._base import Count, Frozen, Size


class SoftmaxAttention(Frozen):
    """MHA, MQA and GQA, full, sliding-window or chunked.

    A token stores ``num_key_value_heads · (head_dim + v_head_dim)`` elements, unless the layer
    reads the cache of an earlier one (``stores_kv=False``).

    Examples
    --------
    >>> SoftmaxAttention(
    ...     num_attention_heads=32, num_key_value_heads=8, head_dim=128, v_head_dim=128
    ... ).elements_per_token
    2048
    """

    kind: Literal["softmax"] = "softmax"
    num_attention_heads: Size
    num_key_value_heads: Size
    head_dim: Size
    """Width of a query and key head."""
    v_head_dim: Size
    window: Size | None = None
    """Sliding window in tokens, the current one included; None = full attention."""
    chunk: Size | None = None
    """Chunked local attention (Llama 4): a token sees its own chunk only."""
    stores_kv: bool = True
    """False: the layer reads the cache of an earlier layer (cross-layer KV sharing)."""
    indexer: Indexer | None = None
    """Block or token selection with keys of its own (MiniMax-M3)."""
    output_gate: bool = False
    qk_norm: bool = False

    @property
    def elements_per_token(self) -> int:
        """Cache elements that one token adds (0 where another layer's cache is read)."""
        return self.num_key_value_heads * (self.head_dim + self.v_head_dim) * self.stores_kv

    @property
    def limit(self) -> int | None:
        """Most tokens that stay in the cache; None = all."""
        bounds = [bound for bound in (self.window, self.chunk) if bound is not None]
        return min(bounds) if bounds else None


class Indexer(Frozen):
    """The lightning indexer of DeepSeek Sparse Attention: small keys that pick ``topk`` tokens."""

    num_heads: Size
    head_dim: Size
    topk: Size
    """Tokens that the core attends to."""
    owned: bool = True
    """False: the layer reuses the selection of an earlier layer; no weights, no keys."""
    key_heads: Size = 1
    ratio: Size = 1
    """Tokens that share a key: blocks are scored, not tokens."""

    @property
    def elements_per_token(self) -> int:
        """Elements of the index keys of one token, or of one block of ``ratio`` tokens."""
        return self.key_heads * self.head_dim * self.owned


class LatentAttention(Frozen):
    """MLA: one latent of ``kv_lora_rank + qk_rope_head_dim`` elements per token for all heads.

    Examples
    --------
    >>> LatentAttention(
    ...     num_attention_heads=128,
    ...     q_lora_rank=1536,
    ...     kv_lora_rank=512,
    ...     qk_nope_head_dim=128,
    ...     qk_rope_head_dim=64,
    ...     v_head_dim=128,
    ... ).elements_per_token
    576
    """

    kind: Literal["latent"] = "latent"
    num_attention_heads: Size
    q_lora_rank: Size | None
    kv_lora_rank: Size
    qk_nope_head_dim: Size
    qk_rope_head_dim: Count
    v_head_dim: Size
    indexer: Indexer | None = None

    @property
    def elements_per_token(self) -> int:
        """Latent elements that one token adds."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    @property
    def limit(self) -> None:
        """All tokens stay."""
        return


class StateAttention(Frozen):
    """Linear attention and state-space layers: a state of fixed size instead of a cache.

    ``variant`` names the recurrence; the FLOP formulas are in ``ledgerkit.costs``.
    """

    kind: Literal["state"] = "state"
    variant: Literal["gated_delta_net", "kda", "mamba", "mamba2", "lightning", "short_conv"]
    """``short_conv`` (LFM2) keeps the columns of its convolution and no state beside."""
    num_heads: Size
    """Heads that hold a state (value heads)."""
    key_dim: Size
    """State rows of one head: key width, or the SSM state size."""
    value_dim: Size
    """State columns of one head."""
    num_groups: Size = 1
    """Key heads, or B/C groups of Mamba-2."""
    conv_channels: Count = 0
    """Channels of the short convolution(s), all together."""
    conv_kernel: Count = 0
    scan_inputs: Count = 0
    """Elements per token that the layer's own channels give its scan (Mamba-1: the rank of the time
    step + 2 · key_dim): ranks that divide the channels have to sum them."""
    state_dtype: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Dtype of the recurrent state as the config asks for it."""

    @property
    def elements_per_token(self) -> int:
        """A state does not grow."""
        return 0

    @property
    def limit(self) -> None:
        """A state has no window."""
        return

    @property
    def state_elements(self) -> int:
        """Elements of the recurrent state of one sequence."""
        if self.variant == "short_conv":
            return 0
        return self.num_heads * self.key_dim * self.value_dim

    def conv_elements(self, columns: Literal["engine", "transformers"] = "engine") -> int:
        """Elements of the convolution's memory: kernel − 1 columns (engines) or all of them."""
        if not self.conv_kernel:
            return 0
        return self.conv_channels * (self.conv_kernel - (columns == "engine"))


class CompressedAttention(Frozen):
    """DeepSeek-V4: one wide head whose key is its value, in a window plus compressed entries.

    ``ratio`` tokens become one entry of ``head_dim`` elements; ratio 0 = window only. With an
    indexer (ratio 4) every entry has an index key too.
    """

    kind: Literal["compressed"] = "compressed"
    num_attention_heads: Size
    head_dim: Size
    qk_rope_head_dim: Count
    window: Size
    ratio: Count
    overlap: bool = False
    """True: neighbouring compression windows overlap (two partial sums are kept)."""
    q_lora_rank: Size | None = None
    o_groups: Size = 1
    o_lora_rank: Size | None = None
    indexer: Indexer | None = None

    @property
    def elements_per_token(self) -> float:
        """Compressed elements that one token adds, beyond the window."""
        return self.head_dim / self.ratio if self.ratio else 0.0

    def compressor_elements(self, columns: Literal["engine", "transformers"] = "engine") -> int:
        """Elements that the compressors keep between steps: values and gates not yet merged.

        Engines keep room for all tokens that one entry is made of, twice where windows overlap, as
        aiconfigurator counts them; DeepSeek's own code and vLLM lay out both halves of every token
        there, twice as many elements again;
        ``"transformers"`` keeps, at the end of a window, the overlap alone.
        """
        owns = self.indexer is not None and self.indexer.owned
        width = self.head_dim + (self.indexer.head_dim if self.indexer and owns else 0)
        parts = int(self.overlap) if columns == "transformers" else 1 + self.overlap
        return 2 * self.ratio * parts * width

    @property
    def limit(self) -> None:
        """The compressed part keeps everything."""
        return


class NoAttention(Frozen):
    """A layer without any token mixing (Nemotron blocks that hold an FFN only)."""

    kind: Literal["none"] = "none"

    @property
    def elements_per_token(self) -> int:
        """Nothing is kept."""
        return 0

    @property
    def limit(self) -> None:
        """Nothing is kept."""
        return


Attention = Annotated[
    SoftmaxAttention | LatentAttention | StateAttention | CompressedAttention | NoAttention,
    Field(discriminator="kind"),
]
SoftmaxAttention.model_rebuild()
