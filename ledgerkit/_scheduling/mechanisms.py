"""Each mechanism on a deployment: the closed form, its inputs read off the cost table."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

from ledgerkit._scheduling.inputs import Inputs, draft_of_mtp, rate
from ledgerkit.catalog.models import load_model
from ledgerkit.costs import scheduling as forms
from ledgerkit.costs.scheduling import SchedulingEntry
from ledgerkit.costs.scheduling.speculation import Acceptance
from ledgerkit.costs.table import CostTable, build
from ledgerkit.errors import DeploymentError
from ledgerkit.spec.deployment import Deployment
from ledgerkit.spec.model import Model

Found = tuple[dict[str, Any], tuple[SchedulingEntry, ...]]


def continuous_batching(
    at: Inputs, *, lengths: Any = "exponential", schedule_s: float = 0.0
) -> Found:
    """Against static batches of the workload's concurrency."""
    found = forms.continuous_batching(
        at.lengths(lengths), at.workload.concurrency, at.decode_s, schedule_s
    )
    return {"gain": found.gain, "idle_share": found.idle_share}, found.entries


def paged_cache(
    at: Inputs, *, lengths: Any = "exponential", max_model_len: int | None = None
) -> Found:
    """Against a reservation of ``max_model_len`` tokens; sequences are per attention rank."""
    table = at.table
    longest = table.deployment.max_model_len if max_model_len is None else max_model_len
    longest = longest or table.model.max_position_embeddings
    answers = at.lengths(lengths)
    found = forms.paged_cache(
        kv_bytes_per_token=at.kv_bytes_per_token, prompt_tokens=at.workload.prompt_tokens,
        kept_bytes=at.kept_bytes(at.workload.prompt_tokens + answers.resident),
        reserved_kept_bytes=at.kept_bytes(longest),
        lengths=answers, pool_bytes=at.pool_bytes, max_model_len=longest,
        block_size=table.deployment.block_size or table.profile.block_size,
        layers=table.model.num_hidden_layers,
    )  # fmt: skip
    names = ("resident_tokens", "contiguous_use", "paged_use", "contiguous_sequences",
             "paged_sequences")  # fmt: skip
    return {name: getattr(found, name) for name in names}, found.entries


def prefix_cache(
    at: Inputs, *, match_tokens: int, block_size: int | None = None,
    restore_bytes_per_s: float | None = None,
) -> Found:  # fmt: skip
    """A hit of ``match_tokens``, and the longest interval between uses for which it pays."""
    table, prompt = at.table, at.workload.prompt_tokens
    own = table.deployment.block_size or table.profile.block_size
    block = own if block_size is None else block_size
    hit = forms.hit_tokens(match_tokens, prompt, block)
    # of windows and states a hit keeps what the last token sees
    token_bytes = at.kv_bytes_per_token + (at.kept_bytes(hit) / hit if hit else 0.0)
    saved = at.prefill_s(0) - at.prefill_s(hit)
    found = forms.prefix_hit(
        prompt_tokens=prompt, match_tokens=match_tokens, block_size=block,
        projection_flop_per_token=at.flop_per_token("attention_kv"),
        ffn_flop_per_token=at.flop_per_token("ffn_mlp"), flop_per_pair=at.flop_per_pair,
        kv_bytes_per_token=token_bytes, saved_s=saved,
        ffn_account="routed_experts" if table.model.active_parameter_count
        < table.model.parameter_count / 2 else "dense",
    )  # fmt: skip
    values: dict[str, Any] = {
        "hit_tokens": hit, "saved_s": saved, "linear_share_saved": found.linear_share_saved,
        "pair_share_saved": found.pair_share_saved,
    }  # fmt: skip
    if hit and token_bytes:
        values["break_even_reuse_s"] = forms.break_even_reuse_s(
            saved / hit, token_bytes, at.pool_bytes
        )
        known = table.hardware.pcie_bytes_per_s
        link = known if restore_bytes_per_s is None else restore_bytes_per_s
        if link is not None:
            values["restore_s"] = hit * forms.restore_s_per_token(token_bytes, link)
    return values, found.entries


def chunked_prefill(at: Inputs, *, chunk_tokens: int = 512) -> Found:
    """Against a step with the whole prompt beside the workload's sequences."""
    prompt, cached = at.workload.prompt_tokens, at.workload.cached_tokens
    last = (math.ceil((prompt - cached) / chunk_tokens) - 1) * chunk_tokens + cached
    before = max(cached, last - chunk_tokens)
    found = forms.chunked_prefill(
        prompt_tokens=prompt, chunk_tokens=chunk_tokens, cached_tokens=cached,
        weight_bytes=at.weight_bytes(chunk_tokens), kv_bytes_per_token=at.kv_bytes_per_token,
        expand_flop_per_token=at.expand_flop_per_token,
        whole_s=at.mixed_s(prompt - cached, cached),
        chunk_s=max(at.mixed_s(min(chunk_tokens, prompt - start), start)
                    for start in (cached, before, last)),
    )  # fmt: skip
    return {"chunks": found.chunks, "reread_tokens": found.reread_tokens}, found.entries


def speculative_decoding(
    at: Inputs, *, acceptance: Acceptance, draft_tokens: int = 1, draft: Any = None
) -> Found:
    """With a draft model, or with the model's own MTP block."""
    table = at.table
    model = draft_of_mtp(table.model) if draft is None else draft
    if model is None:
        raise DeploymentError(
            f"{table.model.slug} has no MTP block",
            given=draft,
            allowed="models with MTP blocks, or a draft",
            fix="name a model as draft=",
        )
    small = load_model(model)
    drafting = Inputs(_draft_table(small, table), at.workload)
    # an MTP block uses the embedding and the head of its model
    shared = 0.0 if draft is not None else drafting.global_weight_bytes

    def once(sequences: int) -> forms.Speculation:
        return forms.speculative_decoding(
            acceptance=acceptance, draft_tokens=draft_tokens, step_s=at.decode_s(sequences),
            verify_s=at.decode_s(sequences, draft_tokens + 1),
            draft_step_s=drafting.decode_s(sequences),
            flop_per_token=at.flop_per_token("attention_kv") + at.flop_per_token("ffn_mlp"),
            draft_resident_bytes=drafting.resident_weight_bytes - shared,
            lookahead_bytes_per_token=at.kv_bytes_per_token,
        )  # fmt: skip

    found = once(at.workload.concurrency)
    most = table.deployment.max_num_seqs or table.profile.max_num_seqs
    crossing = forms.crossover(lambda sequences: once(sequences).speedup, min(most, 4096))
    return {
        "tokens_per_step": found.tokens_per_step, "speedup": found.speedup,
        "crossover_concurrency": crossing,
    }, found.entries  # fmt: skip


def _draft_table(draft: Model, table: CostTable) -> CostTable:
    """The draft in the layout of the large model, its weights as its checkpoint has them."""
    fields: dict[str, Any] = {"weights": None, "experts": None, "max_model_len": None, "pp": 1}
    if not any(weight.routed for weight, _ in draft.booked_weights()):
        fields["ep"] = 1
    layout = Deployment(**(table.deployment.model_dump() | fields))
    return build(draft, layout, table.hardware, table.efficiencies, table.profile)


def expert_balance(at: Inputs, *, skew: float = 1.0) -> Found:
    """Waiting for the fullest rank of the expert group, by what binds the experts."""
    ffn, _ = at.experts()
    ranks, tokens, per_token = (
        at.table.deployment.ep,
        at.workload.concurrency,
        ffn.num_experts_per_tok,
    )
    compute_s, memory_s = at.experts_s()
    reads = memory_s > compute_s
    entry = forms.expert_imbalance(
        ranks=ranks, tokens=tokens, per_token=per_token, skew=skew,
        experts_s=compute_s + memory_s, experts=ffn.num_experts if reads else None,
    )  # fmt: skip
    fullest = (
        forms.fullest_reads(ranks, tokens, per_token, ffn.num_experts)
        if reads
        else forms.fullest_rank(ranks, tokens, per_token, skew)
    )
    bound = "weights" if reads else "arithmetic"
    return {"fullest_over_mean": fullest, "bound": bound}, (entry,) if entry.amount else ()


def node_limited_routing(
    at: Inputs, *, nodes: int, node_limit: int | None = None
) -> Found:  # fmt: skip
    """Copies to other nodes, of all layers; the limit is the model's unless given."""
    ffn, layers = at.experts()
    own = ffn.topk_group if ffn.n_group > 1 else nodes
    limit = own if node_limit is None else node_limit
    width = ffn.expert_hidden_size or at.table.model.hidden_size
    limit = min(limit, nodes)
    entry = forms.node_limited_routing(
        nodes=nodes, node_limit=limit, experts=ffn.num_experts,
        per_token=ffn.num_experts_per_tok, tokens=at.workload.concurrency * layers,
        token_bytes=forms.dispatch_bytes(width) + forms.combine_bytes(width),
    )  # fmt: skip
    free = forms.distinct_nodes(nodes, ffn.num_experts, ffn.num_experts_per_tok)
    limited = forms.distinct_nodes(nodes, ffn.num_experts, ffn.num_experts_per_tok, limit)
    return {"nodes_free": free, "nodes_limited": limited}, (entry,) if entry.amount else ()


def expert_exchange(
    at: Inputs, *, kernels: Literal["normal", "low_latency"] = "normal",
    most_tokens: int | None = None,
) -> Found:  # fmt: skip
    """DeepEP messages of one rank and layer, and the buffers of low-latency kernels."""
    ffn, _ = at.experts()
    layout = at.table.deployment
    tokens = math.ceil(at.workload.concurrency / (layout.tp * layout.dp_attention))
    width = ffn.expert_hidden_size or at.table.model.hidden_size
    one = {"tokens": tokens, "per_token": ffn.num_experts_per_tok, "hidden_size": width}
    if kernels == "normal":
        return {}, forms.normal_exchange(ranks=layout.ep, experts=ffn.num_experts, **one)
    buffers = forms.low_latency_buffers(
        most_tokens=tokens if most_tokens is None else most_tokens,
        experts=ffn.num_experts,
        hidden_size=width,
    )
    return {}, (*forms.low_latency_exchange(**one), buffers)


def graph_padding(at: Inputs) -> Found:
    """The captured size above the workload's concurrency."""
    table, many = at.table, math.ceil(at.workload.concurrency / at.table.deployment.dp_attention)
    size = forms.padded(many, table.profile.graph_capture_sizes)
    scale = table.deployment.dp_attention
    scalars = table.efficiencies
    found = forms.graph_padding(
        sequences=many, sizes=table.profile.graph_capture_sizes,
        flop_per_token=at.flop_per_token("attention_kv") + at.flop_per_token("ffn_mlp"),
        step_s=at.decode_s(many * scale), padded_step_s=at.decode_s(size * scale),
        kernels=table.kernels, kernel_s=scalars.kernel_latency_s.mid,
        host_kernel_s=scalars.host_prefill_kernel_s.mid,
    )  # fmt: skip
    return {"padded_sequences": size, "captured": found.captured}, found.entries


def expert_offload(
    at: Inputs, *, how: Literal["stream", "in_place"] = "stream",
    link_bytes_per_s: float | None = None, host_bytes_per_s: float = 0.0,
    host_flop_per_s: float = 0.0, sync_s: float = 0.0,
) -> Found:  # fmt: skip
    """Routed experts in host memory."""
    ffn, layers = at.experts()
    table = at.table
    stored = at.expert_bytes()
    width = ffn.expert_hidden_size or table.model.hidden_size
    link = rate("link_bytes_per_s", link_bytes_per_s, table.hardware.pcie_bytes_per_s)
    found = forms.expert_offload(
        layers=layers, experts=ffn.num_experts, per_token=ffn.num_experts_per_tok,
        expert_bytes=stored, tokens=at.workload.concurrency, how=how,
        link_bytes_per_s=link,
        host_bytes_per_s=host_bytes_per_s, host_flop_per_s=host_flop_per_s,
        expert_flop_per_token=2.0 * ffn.matrices * ffn.num_experts_per_tok
        * ffn.moe_intermediate_size * width,
        hidden_bytes=2.0 * width, sync_s=sync_s, device_s=sum(at.experts_s()),
    )  # fmt: skip
    return {"experts_read": found.experts_read, "seconds": found.seconds}, found.entries


def disaggregation(
    at: Inputs, *, link_bytes_per_s: float | None = None, hidden_share: float = 0.0
) -> Found:
    """Prefill on devices of its own, and the cache sent over."""
    table, prompt = at.table, at.workload.prompt_tokens
    link = rate("link_bytes_per_s", link_bytes_per_s, table.hardware.nic_bytes_per_s)
    entries = forms.disaggregation(
        prompt_tokens=prompt, cache_bytes=table.model.cache_bytes(prompt, table.deployment.kv_dtype)
        / table.deployment.devices, link_bytes_per_s=link, hidden_share=hidden_share,
        stall_s=max(0.0, at.prefill_s(at.workload.cached_tokens)),
        weight_bytes=at.resident_weight_bytes,
    )  # fmt: skip
    return {}, entries


def pipeline_bubble(at: Inputs, *, micro_batches: int | None = None) -> Found:
    """One prefill pass through the stages."""
    stages = at.table.deployment.pp
    many = stages if micro_batches is None else micro_batches
    whole = at.prefill_s(at.workload.cached_tokens)
    entry = forms.pipeline_bubble(stages=stages, micro_batches=many, stage_s=whole / stages / many)
    share = forms.bubble_share(stages, many)
    return {"bubble_share": share}, (entry,) if entry.amount else ()


def agent_context(
    at: Inputs, *, tool_tokens: int, policy: forms.Policy = "trim", steps: int = 20,
    keep: int = 4, stub_tokens: int = 0, every: int = 1, summary_tokens: int = 512,
) -> Found:  # fmt: skip
    """An agent that trims or summarises its tool messages, against one that keeps all."""
    how = {"steps": steps, "prompt_tokens": at.workload.prompt_tokens,
           "answer_tokens": at.workload.output_tokens, "tool_tokens": tool_tokens}  # fmt: skip
    kept = forms.agent_turns("keep", **how)
    turns = forms.agent_turns(
        policy, keep=keep, stub_tokens=stub_tokens, every=every, summary_tokens=summary_tokens,
        **how,
    )  # fmt: skip
    found = forms.trimming(
        turns, kept, flop_per_pair=at.flop_per_pair, kv_bytes_per_token=at.kv_bytes_per_token,
        flop_per_token=at.flop_per_token("attention_kv") + at.flop_per_token("ffn_mlp"),
    )  # fmt: skip
    values: dict[str, Any] = {}
    for name, many in ((policy, turns), ("keep", kept)):
        longest = max(turn.context + turn.written for turn in many)
        values |= {f"longest_context_{name}": longest,
                   f"computed_tokens_{name}": sum(turn.computed for turn in many)}  # fmt: skip
        if longest <= at.table.model.max_position_embeddings:
            values[f"seconds_{name}"] = math.fsum(at.turn_s(turn) for turn in many)
    return values, found.entries


MECHANISMS: Mapping[str, Callable[..., Found]] = {
    function.__name__: function
    for function in (
        continuous_batching, paged_cache, prefix_cache, chunked_prefill, speculative_decoding,
        expert_balance, node_limited_routing, expert_exchange, graph_padding, expert_offload,
        disaggregation, pipeline_bubble, agent_context,
    )
}  # fmt: skip


def settings_of(name: str) -> dict[str, Any]:
    """Names of a mechanism's settings, with their defaults; ``...`` where there is none."""
    parameters = inspect.signature(MECHANISMS[name]).parameters.values()
    return {
        p.name: ... if p.default is p.empty else p.default
        for p in parameters
        if p.kind is p.KEYWORD_ONLY
    }
