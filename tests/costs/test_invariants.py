"""What must hold whatever the numbers are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerkit.errors import DeploymentError
from ledgerkit.spec.attention import LatentAttention
from ledgerkit.spec.deployment import Deployment
from tests.costs import world

RESOURCES = ("compute", "read", "write", "communicate", "time")
MODELS = world.every_kind()
ids = [model.slug for model in MODELS]
every_model = pytest.mark.parametrize("model", MODELS, ids=ids)


def sums(books, *, skip_ops=(), scope="device"):
    """Amounts by (phase, ledger, account, resource), steps left out."""
    found: dict[tuple[str, str, str, str], list[float]] = {}
    for entry in books._entries:
        if entry.op in skip_ops or entry.resource == "steps":
            continue
        value = entry.amount_device if scope == "device" else entry.amount_replica
        if value is not None:
            key = (entry.phase, entry.ledger, entry.account, entry.resource)
            found.setdefault(key, []).append(value)
    return {key: math.fsum(values) for key, values in found.items() if any(values)}


def same(one, other, *, rel=1e-12):
    assert one.keys() == other.keys()
    for key, value in one.items():
        assert other[key] == pytest.approx(value, rel=rel), key


def test_as_many_kv_heads_as_heads_is_multi_head_attention():
    stated = world.model(world.LLAMA_8B, num_key_value_heads=32)
    config = {k: v for k, v in world.LLAMA_8B.items() if k != "num_key_value_heads"}
    same(sums(world.books_of(stated)), sums(world.books_of(world.model(config))))


def test_fewer_kv_heads_save_bytes_and_no_core_flop():
    books = [
        sums(world.books_of(world.model(world.LLAMA_8B, num_key_value_heads=heads)))
        for heads in (32, 8, 1)
    ]
    core = ("decode", "attention_kv", "core", "compute")
    assert books[0][core] == books[1][core] == books[2][core]
    for phase, resource in (("decode", "read"), ("decode", "write"), ("hold", "resident")):
        key = (phase, "attention_kv", "cache", resource)
        assert books[0][key] == 4 * books[1][key] == 32 * books[2][key]


@pytest.mark.parametrize(("tp", "concurrency"), [(1, 1), (1, 70), (4, 9)])
def test_experts_that_are_all_used_are_a_dense_mlp(tp, concurrency):
    moe = world.model(world.MIXTRAL, num_local_experts=4, num_experts_per_tok=4,
                      intermediate_size=3584)  # fmt: skip
    dense = world.model(world.LLAMA_8B, intermediate_size=4 * 3584)
    books = [
        sums(world.books_of(m, Deployment(tp=tp), concurrency=concurrency)) for m in (moe, dense)
    ]
    for phase in ("prefill", "decode", "hold"):
        for resource in ("compute", "read", "resident", "time"):
            found, expected = (
                side.get((phase, "ffn_mlp", account, resource))
                for side, account in zip(books, ("routed_experts", "dense"), strict=True)
            )
            assert found == (expected if expected is None else pytest.approx(expected, rel=1e-12))


def test_a_window_beyond_the_context_is_full_attention():
    config = {**world.LLAMA_8B, "model_type": "mistral", "max_position_embeddings": 32768}
    full = world.books_of(world.model(config, sliding_window=None))
    wide = world.books_of(world.model(config, sliding_window=32768))
    # pages are rounded up where the whole context is kept
    same(
        sums(full, skip_ops=("page_rounding",)),
        sums(wide, skip_ops=("page_rounding",)),
    )
    narrow = sums(world.books_of(world.model(config, sliding_window=128)))
    for key in (
        ("decode", "attention_kv", "cache", "read"), ("hold", "attention_kv", "cache", "resident"),
        ("prefill", "attention_kv", "core", "compute"),
    ):  # fmt: skip
        assert narrow[key] < sums(full)[key]


def test_chunks_beyond_the_context_are_full_attention():
    full = world.books_of(world.model(world.LLAMA_8B))
    same(
        sums(full, skip_ops=("page_rounding",)),
        sums(world.books_of(world.chunked(1 << 17)), skip_ops=("page_rounding",)),
    )


def test_a_selection_of_all_tokens_is_dense_attention_and_an_indexer():
    dense = world.books_of(world.model(world.DEEPSEEK_V3))
    every = world.books_of(world.sparse(topk=1 << 17))
    one, other = (
        {k: v for k, v in sums(books).items() if k[0] in ("decode", "hold")}
        for books in (dense, every)
    )
    extra = {key for key in other if key[2] == "indexer"}
    assert {key[3] for key in extra} == {"compute", "read", "write", "resident", "time"}
    launch = ("decode", "scheduling", "launch", "time")
    assert other.pop(launch) > one.pop(launch)
    same(one, {key: value for key, value in other.items() if key not in extra})


@every_model
def test_chunks_of_a_prompt_keep_its_work_and_read_more(model):
    def books(chunk):
        return sums(
            world.books_of(model, Deployment(max_num_batched_tokens=chunk), prompt_tokens=900)
        )

    whole, small = books(900), books(90)
    expands = any(
        isinstance(g.attention, LatentAttention) and g.attention.indexer is None
        for g in model.groups
    )
    for key, value in whole.items():
        phase, _, account, resource = key
        if phase != "prefill":
            assert small[key] == value
        elif resource in ("compute", "write") and account != "state":
            if account == "projections" and expands and resource == "compute":
                assert small[key] > value
            else:
                assert small[key] == pytest.approx(value, rel=1e-12)
        elif resource == "read":
            assert small[key] >= value * (1 - 1e-12)
    reads = [math.fsum(v for k, v in found.items() if k[0] == "prefill" and k[3] == "read")
             for found in (whole, small)]  # fmt: skip
    assert reads[1] > reads[0]


@pytest.mark.parametrize("config", [world.LLAMA_8B, world.GEMMA3, world.GPT_OSS, world.MIXTRAL],
                         ids=lambda config: config["model_type"])  # fmt: skip
def test_decoding_token_by_token_counts_the_pairs_of_a_prefill(config):
    model, tokens = world.model(config), 300
    core = ("attention_kv", "core", "compute")
    whole = sums(world.books_of(model, prompt_tokens=tokens))["prefill", *core]
    steps = [
        sums(world.books_of(model, prompt_tokens=context, output_tokens=1))["decode", *core]
        for context in range(1, tokens + 1)
    ]
    assert math.fsum(steps) == pytest.approx(whole, rel=1e-12)


@every_model
@pytest.mark.parametrize("tp", [2, 4])
def test_tensor_parallel_shards_sum_to_the_whole(model, tp):
    """Unique amounts over all ranks are those of one device; the rest books to scheduling."""
    one = sums(world.books_of(model, concurrency=3))
    many = sums(world.books_of(model, Deployment(tp=tp), concurrency=3), scope="replica")
    for key, value in one.items():
        phase, ledger, _, resource = key
        if ledger != "scheduling" and resource != "time":
            assert many[key] == pytest.approx(value, rel=1e-12), key
        assert phase in ("prefill", "decode", "hold")
    assert {key for key in many if key[1] != "scheduling"} == {
        key for key in one if key[1] != "scheduling" and key[3] != "time"
    }


@every_model
@pytest.mark.parametrize(
    "layout",
    [{"dp_attention": 4}, {"dp_attention": 8, "ep": 8}, {"tp": 2, "dp_attention": 2},
     {"tp": 2, "dp_attention": 4, "ep": 8}, {"tp": 4, "ep": 2}],
    ids=str,
)  # fmt: skip
def test_any_spread_over_one_stage_does_the_work_of_one_device(model, layout):
    try:
        books = world.books_of(model, Deployment(**layout), concurrency=16)
    except DeploymentError:
        assert "ep" in layout
        return
    one, many = sums(world.books_of(model, concurrency=16)), sums(books, scope="replica")
    for key, value in one.items():
        _, ledger, _, resource = key
        if ledger != "scheduling" and resource != "time":
            assert many[key] == pytest.approx(value, rel=1e-12), key


@every_model
@pytest.mark.parametrize(
    "layout",
    [
        {"tp": 2}, {"tp": 4}, {"pp": 2}, {"pp": 3, "tp": 2}, {"dp_attention": 4},
        {"tp": 2, "dp_attention": 2}, {"tp": 2, "dp_attention": 2, "ep": 4},
        {"tp": 4, "ep": 4}, {"tp": 4, "ep": 2}, {"dp_attention": 8, "ep": 8, "pp": 2},
    ],
    ids=str,
)  # fmt: skip
def test_weights_on_all_devices_are_the_checkpoint_and_its_copies(model, layout):
    try:
        books = world.books_of(model, Deployment(**layout))
    except DeploymentError:
        assert "ep" in layout
        assert not any(group.ffn.kind == "moe" for group in model.groups)
        return
    held = [
        e for e in books._entries if e.phase == "hold" and e.op in ("weights", "weights copies")
    ]
    once = math.fsum(e.amount_replica for e in held if e.ledger != "scheduling")
    assert once == pytest.approx(model.weight_bytes, rel=1e-12)
    if layout.get("pp", 1) == 1:
        # all ranks hold the same number of bytes
        everywhere = math.fsum(e.amount_replica for e in held)
        on_one = math.fsum(e.amount_device for e in held)
        assert everywhere == pytest.approx(on_one * books.deployment.devices, rel=1e-12)


@every_model
def test_a_pipeline_divides_weights_and_copies_a_tied_table(model):
    books = world.books_of(model, Deployment(pp=2))
    held = [e for e in books._entries if e.phase == "hold" and e.op == "weights copies"]
    table = next((w for w in model.globals if w.use == "head"), None)
    if model.tie_word_embeddings:
        assert [(e.account, e.amount_replica) for e in held] == [("pp", table.bytes)]
    else:
        assert not held


@every_model
@pytest.mark.parametrize(
    "layout",
    [{}, {"tp": 4}, {"dp_attention": 4}, {"tp": 2, "dp_attention": 2}, {"tp": 2, "ep": 2},
     {"tp": 2, "dp_attention": 4, "ep": 8}],
    ids=str,
)  # fmt: skip
def test_equal_ranks_reconcile_with_the_replica(model, layout):
    """With equal ranks, entries and copies of the replica are devices times one device."""
    try:
        books = world.books_of(model, Deployment(**layout), concurrency=8)
    except DeploymentError:
        assert "ep" in layout
        return
    for phase in ("prefill", "decode", "hold"):
        for resource in ("compute", "read", "write", "communicate", "resident"):
            chosen = [e for e in books._entries if (e.phase, e.resource) == (phase, resource)]
            everywhere = math.fsum(e.amount_replica for e in chosen)
            device = math.fsum(e.amount_device for e in chosen)
            if phase == "prefill" and books.deployment.dp_attention > 1:
                # one request on one attention rank; the experts of all ranks serve it
                spread = [e.amount_device for e in chosen if e.account == "routed_experts"]
                others = device - math.fsum(spread)
                expected = others * books.deployment.tp
                expected += math.fsum(spread) * books.deployment.devices
            else:
                expected = device * books.deployment.devices
            assert everywhere == pytest.approx(expected, rel=1e-11), (phase, resource)


@every_model
def test_a_zero_is_written_for_no_account(model):
    for entry in world.books_of(model, Deployment(tp=2))._entries:
        assert entry.amount_device or entry.amount_replica


# monotonicity ----------------------------------------------------------------------------------

models = st.sampled_from(MODELS)
# the first tokens of a new chunk see few others: a longer prompt is cheaper there, as it should be
unchunked = st.sampled_from(
    [m for m in MODELS if not any(getattr(g.attention, "chunk", None) for g in m.groups)]
)


@settings(max_examples=60)
@given(model=unchunked, prompt=st.integers(1, 900), more=st.integers(1, 100),
       concurrency=st.integers(1, 300), extra=st.integers(1, 50))  # fmt: skip
def test_more_to_do_is_never_cheaper(model, prompt, more, concurrency, extra):
    base = world.books_of(model, prompt_tokens=prompt, concurrency=concurrency)
    longer = world.books_of(model, prompt_tokens=prompt + more, concurrency=concurrency)
    fuller = world.books_of(model, prompt_tokens=prompt, concurrency=concurrency + extra)
    # sums of parts that are equal may differ in the last bits
    rounding = 1 - 1e-12
    assert longer.ttft_s >= base.ttft_s * rounding
    for other in (longer, fuller):
        assert other.tpot_s >= base.tpot_s * rounding
        assert other.e2e_s >= base.e2e_s * rounding
        for resource in ("compute", "read", "write"):
            before, after = (b.total("decode", resource) for b in (base, other))
            assert after >= before * rounding
        cache = [
            math.fsum(e.amount_device for e in b.resident_entries() if e.op != "page_rounding")
            for b in (base, other)
        ]
        assert cache[1] >= cache[0]
        assert other.max_concurrency <= base.max_concurrency or other is fuller


@settings(max_examples=40)
@given(model=models, factor=st.floats(1.01, 50), concurrency=st.integers(1, 300),
       field=st.sampled_from(("memory_bytes_per_s", "peak", "scaleup_bytes_per_s")))  # fmt: skip
def test_a_faster_device_is_never_slower(model, factor, concurrency, field):
    if field == "peak":
        change = {"peak_flop_per_s": tuple((d, v * factor) for d, v in world.RACK.peak_flop_per_s)}
    else:
        change = {field: getattr(world.RACK, field) * factor}
    fast = world.RACK.model_copy(update=change)
    for layout in (Deployment(), Deployment(tp=2)):
        slow = world.books_of(model, layout, concurrency=concurrency)
        quick = world.books_of(model, layout, fast, concurrency=concurrency)
        assert quick.ttft_s <= slow.ttft_s * (1 + 1e-12)
        assert quick.tpot_s <= slow.tpot_s * (1 + 1e-12)


@every_model
def test_bands_hold_the_middle(model):
    for layout in (Deployment(), Deployment(tp=2, pp=2)):
        books = world.books_of(model, layout, concurrency=5)
        for name in ("ttft_s", "tpot_s"):
            low, mid, high = (getattr(books, name + end) for end in ("_low", "", "_high"))
            assert 0 < low < mid < high
        assert books.tokens_per_s_low < books.tokens_per_s < books.tokens_per_s_high
        for entry in books._entries:
            assert entry.low <= entry.amount_device <= entry.high, entry
            assert entry.basis in ("exact", "estimated", "calibrated")


@every_model
def test_smaller_formats_hold_and_read_less(model):
    plain = world.books_of(model, Deployment(weights="bf16"))
    for weights in ("fp8", "fp8_block128", "int8", "int4_g128", "int4_g32", "mxfp4", "nvfp4"):
        small = world.books_of(model, Deployment(weights=weights))
        assert small.resident_bytes_device < plain.resident_bytes_device
        assert small.total("decode", "read") < plain.total("decode", "read")
        assert small.total("decode", "compute") == plain.total("decode", "compute")
        # embeddings, head, norms and router keep their format
        for account in ("vocab", "router", "norms"):
            kept = [
                math.fsum(e.amount_device for e in books.resident_entries() if e.account == account)
                for books in (plain, small)
            ]
            assert kept[0] == kept[1]
