"""What a reading did with a config, in words: the thing to paste into an issue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgerkit.readers.config import read_with_record
from ledgerkit.text import get

if TYPE_CHECKING:
    import polars as pl

    from ledgerkit.readers.record import Record
    from ledgerkit.spec.model import Model

__all__ = ["ConfigReport", "decides", "read_config_report", "topic"]

_BY_TOPIC = {
    "hidden": "hidden_size n_embd d_model",
    "layers": "num_hidden_layers n_layer n_layers num_layers "
    "hybrid_override_pattern layers_block_type",
    "vocab": "vocab_size additional_vocab_size",
    "context": "max_position_embeddings n_positions model_max_length max_position_embedding "
    "max_seq_len seq_length",
    "tie": "tie_word_embeddings",
    "heads": "num_attention_heads n_head n_heads attention_heads "
    "swa_num_attention_heads num_sliding_attention_heads",
    "kv_heads": "num_key_value_heads num_kv_heads multi_query new_decoder_architecture "
    "num_attention_groups swa_num_key_value_heads num_global_key_value_heads attention_k_eq_v "
    "n_heads_in_group",
    "head_dim": "head_dim attention_head_dim v_head_dim swa_head_dim swa_v_head_dim "
    "global_head_dim share_q_dim",
    "latent": "q_lora_rank kv_lora_rank qk_nope_head_dim qk_rope_head_dim o_lora_rank o_groups",
    "window": "sliding_window use_sliding_window max_window_layers attention_chunk_size "
    "sliding_window_pattern window_size",
    "layer_kinds": "layer_types attention_types "
    "hybrid_layer_pattern attn_type_list attn_layer_period "
    "attn_layer_offset full_attention_interval full_attn_layers kda_layers block_configs no_op "
    "no_rope_layers no_rope_layer_interval",
    "indexer": "index_n_heads index_head_dim index_topk indexer_types index_topk_freq "
    "index_skip_topk_offset index_topk_pattern sparse_num_index_heads sparse_index_dim "
    "sparse_topk_blocks sparse_block_size sparse_attention_freq use_sparse_attention",
    "state": "linear_conv_kernel_dim linear_key_head_dim linear_value_head_dim "
    "linear_num_key_heads linear_num_value_heads mamba_ssm_dtype mamba_ssm_cache_dtype "
    "ssm_state_size mamba_num_heads mamba_head_dim n_groups conv_kernel mamba_d_state "
    "mamba_d_conv mamba_expand mamba_dt_rank mamba_n_heads mamba_d_head mamba_n_groups "
    "short_conv_kernel_size use_full_rank_gate",
    "compression": "compress_ratios compress_rates",
    "bias": "attention_bias qkv_bias use_bias bias mlp_bias attention_out_bias mamba_conv_bias "
    "mamba_proj_bias use_conv_bias num_ln_in_parallel_attn parallel_attn",
    "norm": "use_qk_norm qk_norm_type qk_layernorm",
    "gate": "attn_output_gate mla_use_output_gate gating attention_output_gate",
    "sink": "add_swa_attention_sink_bias add_full_attention_sink_bias",
    "dense": "intermediate_size n_inner ffn_dim ffn_hidden_size dense_intermediate_size "
    "intermediate_size_mlp use_double_wide_mlp ffn_mult",
    "experts": "num_experts n_routed_experts num_local_experts moe_num_experts enable_moe_block",
    "topk": "num_experts_per_tok experts_per_token num_experts_per_token top_k_experts moe_k "
    "moe_topk moe_top_k",
    "expert_width": "moe_intermediate_size expert_intermediate_size moe_latent_size "
    "routed_expert_hidden_size latent_moe_use_norm expert_dtype",
    "shared": "n_shared_experts num_shared_experts num_shared_expert shared_intermediate_size "
    "shared_expert_intermediate_size moe_shared_expert_intermediate_size share_expert_dim "
    "moe_num_shared_experts",
    "routing": "n_group topk_group topk_method use_routing_bias num_expert_group num_hash_layers",
    "moe_layers": "first_k_dense_replace moe_layer_freq mlp_layer_types decoder_sparse_step "
    "mlp_only_layers interleave_moe_layer_step moe_layers moe_layers_enum expert_layer_period "
    "expert_layer_offset moe_layer_start_index moe_layer_end_index moe_layer_interval",
    "sharing": "num_kv_shared_layers",
    "per_layer": "hidden_size_per_layer_input vocab_size_per_layer_input",
    "residual": "hc_mult altup_num_inputs laurel_rank attn_res_block_size",
    "mtp": "num_nextn_predict_layers mtp_num_hidden_layers",
    "dtype": "dtype torch_dtype",
    "quantization": "quantization_config",
}
_TOPIC_OF = {name: topic for topic, names in _BY_TOPIC.items() for name in names.split()}


def topic(path: str) -> str:
    """Return what a field is about: ``heads``, ``window`` ..., ``other`` where it is not listed.

    Examples
    --------
    >>> topic("text_config.num_key_value_heads")
    'kv_heads'
    """
    return _TOPIC_OF.get(path.rpartition(".")[2].partition("[")[0], "other")


def decides(path: str, language: str | None = None) -> str:
    """Return what a field decides, in a few words.

    Examples
    --------
    >>> decides("text_config.num_key_value_heads", "en")
    'KV heads: cache and k, v projections'
    """
    return get(f"reading.decides.{topic(path)}", language)


@dataclass(frozen=True, slots=True)
class ConfigReport:
    """How a config was read: every field, what it decided or why it was left out.

    ``print(report)`` shows it in the default language.
    """

    model: Model
    record: Record

    def to_frame(self, language: str | None = None) -> pl.DataFrame:
        """Return one row per field.

        Parameters
        ----------
        language : {"zh", "en"}, optional
            Language of the texts.

        Returns
        -------
        polars.DataFrame
            ``path, value, status`` (``read`` or ``ignored``), ``origin`` (``config``, ``class
            default``, ``derived``, ``replaced``), ``meaning`` (what it decides, or why it is
            irrelevant), ``rule`` (of derived values).
        """
        import polars as pl

        rows = [
            {
                "path": use.path,
                "value": _shown(use.value),
                "status": "read",
                "origin": use.origin,
                "meaning": decides(use.path, language),
                "rule": use.rule,
            }
            for use in self._once()
        ]
        rows += [
            {
                "path": ignored.path,
                "value": _shown(ignored.value),
                "status": "ignored",
                "origin": "config",
                "meaning": _reason(ignored.reason, language),
                "rule": "",
            }
            for ignored in self.record.ignored
        ]
        names = ("path", "value", "status", "origin", "meaning", "rule")
        return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String))

    def _once(self) -> list[Any]:
        """Return each use of a field once, in order."""
        return list({(use.path, use.origin): use for use in self.record.used}.values())

    def text(self, language: str | None = None) -> str:
        """Return the report as plain text.

        Parameters
        ----------
        language : {"zh", "en"}, optional
            Default: the one of ``lk.set_language``.

        Returns
        -------
        str
            Lines, ready to paste.
        """
        model = self.model
        lines = [
            get("reading.title", language, name=model.name),
            get("reading.source", language, source=model.source),
            get(
                "reading.summary",
                language,
                layers=model.num_hidden_layers,
                parameters=f"{model.parameter_count:,}",
                kv=f"{model.kv_bytes_per_token():,.0f}",
                weights=f"{model.weight_bytes:,.0f}",
                quantization=model.quantization,
            ),
            "",
            f"{get('reading.layer_groups', language)}:",
        ]
        lines += [f"  {group.count} x {_group_text(group)}" for group in model.groups]
        lines += ["", f"{get('reading.used', language)}:"]
        for use in self._once():
            origin = get(f"reading.origin.{use.origin.replace(' ', '_')}", language)
            rule = f", {get('reading.rule', language, rule=use.rule)}" if use.rule else ""
            lines.append(
                f"  {use.path} = {_shown(use.value)} [{origin}{rule}]: "
                f"{decides(use.path, language)}"
            )
        lines += ["", f"{get('reading.ignored', language)}:"]
        for reason in dict.fromkeys(ignored.reason for ignored in self.record.ignored):
            names = [i.path for i in self.record.ignored if i.reason == reason]
            lines.append(f"  {_reason(reason, language)}: {', '.join(dict.fromkeys(names))}")
        lines += ["", f"{get('reading.assumed', language)}:"]
        notes = self.record.notes(language) or (get("reading.none", language),)
        lines += [f"  {note}" for note in notes]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()


def read_config_report(
    config: Mapping[str, Any] | str | Path, slug: str | None = None, source: str | None = None
) -> ConfigReport:
    """Read a config and say what each of its fields did.

    Parameters
    ----------
    config : Mapping, str or Path
        As for ``read_config``.
    slug, source : str, optional
        Names for the report.

    Returns
    -------
    ConfigReport

    Raises
    ------
    ConfigError
        The config cannot be read; the message names the field.

    Examples
    --------
    >>> config = dict(
    ...     model_type="llama",
    ...     hidden_size=64,
    ...     intermediate_size=96,
    ...     vocab_size=100,
    ...     num_hidden_layers=2,
    ...     num_attention_heads=4,
    ...     rope_theta=1e4,
    ...     torch_dtype="bfloat16",
    ... )
    >>> frame = read_config_report(config).to_frame("en")
    >>> frame.filter(frame["path"] == "rope_theta")["meaning"].item()
    'rotary embedding: no stored weights, no cache'
    """
    model, record = read_with_record(config, slug, source)
    return ConfigReport(model, record)


def _reason(reason: str, language: str | None) -> str:
    return get(f"reading.reason.{reason.replace(' ', '_')}", language)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _group_text(group: Any) -> str:
    """Return one group of layers as its own description."""

    def part(spec: Any) -> str:
        values = spec.model_dump(exclude_defaults=True, exclude={"kind"})
        return f"{spec.kind}({', '.join(f'{name}={value}' for name, value in values.items())})"

    return f"{part(group.attention)} + {part(group.ffn)}"
