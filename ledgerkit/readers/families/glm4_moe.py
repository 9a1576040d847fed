"""GLM-4.5, 4.5V, 4.6 and 4.7: attention with q, k, v biases, experts as in DeepSeek-V3.

Source: ``models/glm4_moe`` of transformers 5.24. ``attention_bias`` covers q, k and v, not o;
``use_qk_norm`` adds a norm per head.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerkit.readers.blocks import attention_norm, gqa_projections
from ledgerkit.readers.families._common import read_frame, read_head_dim, read_heads
from ledgerkit.readers.families.deepseek import moe_layers, read_ffns, read_mtp
from ledgerkit.readers.fields import Fields
from ledgerkit.readers.rows import Architecture, Layer
from ledgerkit.spec.attention import SoftmaxAttention

DEFAULTS: dict[str, Mapping[str, Any]] = {
    "glm4_moe": {
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "use_qk_norm": False,
        "n_shared_experts": 1,
        "n_group": 1,
        "topk_group": 1,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "num_nextn_predict_layers": 0,
    },
    "glm4v_moe_text": {
        "num_key_value_heads": 8,
        "max_position_embeddings": 65536,
        "tie_word_embeddings": False,
        "attention_bias": True,
        "n_shared_experts": 1,
        "n_group": 1,
        "topk_group": 1,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
    },
}


def read(fields: Fields, model_type: str) -> Architecture:
    """Read a GLM-4.5 decoder."""
    frame = read_frame(fields)
    heads, kv_heads = read_heads(fields)
    head_dim = read_head_dim(fields, frame.hidden, heads)
    vision = model_type == "glm4v_moe_text"
    if vision:
        fields.only("use_qk_norm", False, why="this model type has no q and k norms")
        if fields.count("num_nextn_predict_layers", default=0):
            fields.record.assume("mtp_not_counted", family="GLM-V")
    qk_norm = not vision and fields.flag("use_qk_norm")
    attention = SoftmaxAttention(
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        qk_norm=qk_norm,
    )
    rows = (
        *attention_norm(frame.hidden),
        *gqa_projections(
            frame.hidden,
            heads,
            kv_heads,
            head_dim,
            qkv_bias=fields.flag("attention_bias"),
            qk_norm=head_dim if qk_norm else None,
        ),
    )
    ffns = read_ffns(fields, frame, correction=True)
    kinds = {
        flag: Layer(attention, ffn, (*rows, *ffn_rows))
        for flag, (ffn, ffn_rows) in zip((False, True), ffns, strict=True)
    }
    flags = moe_layers(fields, frame)
    mtp = None if vision else read_mtp(fields, frame, kinds[flags[-1]])
    return frame.architecture([kinds[flag] for flag in flags], mtp=mtp)
