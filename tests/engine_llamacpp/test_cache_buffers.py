"""Every cache buffer that the real llama.cpp prints, against ours, to the last digit."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledgerkit.errors import CapacityError, LedgerError, UnsupportedDtypeError
from ledgerkit.readers.gguf import read_gguf, read_gguf_file
from ledgerkit.spec.llamacpp_cache import CACHE_TYPES, LlamaCppCache, llamacpp_cache
from tests.engine_llamacpp.server import Refused, Started, start
from tests.gguf import build
from tests.gguf.writing import experts

pytestmark = pytest.mark.xdist_group("llamacpp")


def compare(
    path: Path,
    n_ctx: int,
    n_parallel: int,
    cache_type: str = "f16",
    cache_type_v: str | None = None,
    *,
    unified: bool = False,
    **options,
) -> tuple[Started, LlamaCppCache]:
    """Start llama.cpp and demand the same lines of our function."""
    type_v = cache_type_v or cache_type
    rules = {name: options.pop(name) for name in ("latent", "windowed") if name in options}
    ours = llamacpp_cache(
        read_gguf(path), n_ctx, n_parallel, cache_type_k=cache_type, cache_type_v=type_v,
        unified=unified, **options, **rules,
    )  # fmt: skip
    theirs = start(path, n_ctx=n_ctx, n_parallel=n_parallel, type_k=cache_type, type_v=type_v,
                   kv_unified=unified, **options)  # fmt: skip
    assert theirs.address.startswith("http://127.0.0.1:")
    assert theirs.caches == [buffer.line for buffer in ours.buffers]
    allocated = [f"{buffer.bytes / 2**20:.2f}" for buffer in ours.buffers if buffer.bytes]
    assert theirs.buffers == allocated
    assert theirs.output == f"{ours.output_bytes / 2**20:.2f}"
    if ours.compute_bytes is not None:
        assert theirs.compute == f"{ours.compute_bytes / 2**20:.2f}"
    assert theirs.context == {
        "n_ctx": ours.n_ctx, "n_ctx_seq": ours.n_ctx_seq, "n_ubatch": ours.n_ubatch
    }  # fmt: skip
    return theirs, ours


@pytest.mark.parametrize("n_parallel", [1, 4])
@pytest.mark.parametrize("cache_type", ["f16", "q8_0"])
@pytest.mark.parametrize("model", ["smollm2", "gemma3"])
def test_real_models(model: str, cache_type: str, n_parallel: int, request: pytest.FixtureRequest):
    path = request.getfixturevalue(model)
    theirs, ours = compare(path, 5000, n_parallel, cache_type)
    assert ours.compute_bytes is not None
    file = read_gguf_file(path)
    assert theirs.file_mib == f"{file.tensor_bytes / 2**20:.2f}"
    assert theirs.parameters == f"{read_gguf(path).parameter_count / 1e6:.2f} M"


@pytest.mark.parametrize(("n_ubatch", "n_parallel", "unified"), [
    (512, 1, False), (128, 1, False), (128, 3, True), (64, 3, False),
])  # fmt: skip
@pytest.mark.parametrize("model", ["smollm2", "gemma3"])
def test_compute_and_output_buffers_of_real_models(
    model: str, n_ubatch: int, n_parallel: int, unified: bool, request: pytest.FixtureRequest
):
    _, ours = compare(request.getfixturevalue(model), 3000, n_parallel, unified=unified,
                      n_ubatch=n_ubatch)  # fmt: skip
    assert ours.compute_bytes is not None
    assert ours.lines[-1] == f"compute buffer size = {ours.compute_bytes / 2**20:.2f} MiB"


def _decoder(architecture: str, moe: int = 0, **shape: object) -> build.Plan:
    keys: dict = {"attention.sliding_window": 512} if "gemma" in architecture else {}
    if moe:
        keys |= {"expert_count": 16, "expert_used_count": moe,
                 "expert_feed_forward_length": shape["width"]}  # fmt: skip
    post = "gemma" in architecture
    plan = build.decoder(
        architecture, keys=keys, tie=post, post_norms=post, dense=not moe,
        qk_norm=architecture not in ("llama", "gemma2", "qwen2"),
        qkv_bias=architecture == "qwen2", **shape,
    )  # fmt: skip
    if moe and architecture == "llama":
        del plan.keys["expert_feed_forward_length"]
    for layer in range(4 if moe else 0):
        experts(plan, layer, 256, shape["width"], 16)
    return plan


@pytest.mark.parametrize("plan", [
    _decoder("llama", width=64, heads=16, kv_heads=8),   # attention is what is largest
    _decoder("llama", width=320, heads=6, kv_heads=6),   # keys as wide as queries
    _decoder("llama", width=2048, heads=4, kv_heads=1),  # the MLP is
    _decoder("qwen2", width=640, heads=4, kv_heads=2),
    _decoder("qwen3", width=32, heads=8, kv_heads=2, hidden=512, layers=6),
    _decoder("gemma2", width=64, heads=16, kv_heads=8),
    _decoder("gemma3", width=256, heads=8, kv_heads=4, hidden=128, layers=6),
    _decoder("llama", moe=8, width=512),
    _decoder("llama", moe=2, width=32, heads=16),
    _decoder("qwen3moe", moe=8, width=64, heads=16),
], ids=lambda plan: plan.architecture)  # fmt: skip
@pytest.mark.parametrize("n_ubatch", [64, 512])
def test_compute_buffers_of_many_shapes(plan: build.Plan, n_ubatch: int, tmp_path: Path):
    """What is largest differs, and so do the holes that the allocator leaves."""
    path = build.write(tmp_path / "shape.gguf", plan)
    _, ours = compare(path, 600, 1, n_ubatch=n_ubatch)
    assert ours.compute_bytes is not None


@pytest.mark.parametrize(("cache_type", "n_parallel"), [("f16", 2), ("q8_0", 1)])
@pytest.mark.parametrize(
    "name", sorted(build.PLANS.keys() - {"mixtral_single_experts"})
)  # llama.cpp reads no tensors of single experts any more
def test_other_architectures(name: str, cache_type: str, n_parallel: int, tiny: dict[str, Path]):
    """MLA, windows, wider full layers, shared caches, experts; every loader takes our tensors."""
    options = {"latent": "expanded"} if name == "deepseek2_expanded" else {}
    theirs, _ = compare(tiny[name], 3000, n_parallel, cache_type, **options)
    counted = sum(tensor.elements for tensor in read_gguf_file(tiny[name]).tensors)
    assert theirs.parameters == f"{counted / 1e6:.2f} M"


@pytest.mark.parametrize(("n_ctx", "n_parallel", "unified", "n_batch", "n_ubatch"), [
    (4096, 3, False, 2048, 512),   # does not divide: rounded up for each sequence
    (4096, 3, True, 2048, 512),    # one rectangle for all, window times sequences
    (2000, 2, False, 2048, 128),   # small physical batch
    (300, 1, False, 2048, 512),    # context below window and batch
    (100, 1, False, 64, 512),      # logical batch below the physical one
    (0, 1, False, 512, 256),       # as trained
])  # fmt: skip
@pytest.mark.parametrize("name", ["gpt_oss", "llama"])
def test_contexts_slots_and_batches(
    name: str, n_ctx: int, n_parallel: int, unified: bool, n_batch: int, n_ubatch: int,
    tiny: dict[str, Path],
):  # fmt: skip
    compare(tiny[name], n_ctx, n_parallel, unified=unified, n_batch=n_batch, n_ubatch=n_ubatch)


@pytest.mark.parametrize("cache_type", CACHE_TYPES)
def test_every_cache_type(cache_type: str, tiny: dict[str, Path]):
    compare(tiny["gemma3"], 1024, 1, cache_type)


def test_keys_and_values_of_different_types(tiny: dict[str, Path]):
    compare(tiny["gemma3"], 1024, 2, "q8_0", "q4_0")


def test_full_size_window_cache(tiny: dict[str, Path]):
    _, ours = compare(tiny["gpt_oss"], 4096, 1, swa_full=True)
    assert {buffer.cells for buffer in ours.buffers} == {4096}


def test_without_flash_attention_values_are_as_wide_as_the_widest(tiny: dict[str, Path]):
    """Gemma 4's layers differ in the width of values: transposed, they are padded."""
    _, padded = compare(tiny["gemma4_e"], 1024, 1, flash_attn=False)
    _, plain = compare(tiny["gemma4_e"], 1024, 1)
    assert padded.bytes > plain.bytes


def test_what_llamacpp_refuses_is_refused(tiny: dict[str, Path], tmp_path: Path):
    narrow = build.write(
        tmp_path / "narrow.gguf", build.decoder("qwen3", qk_norm=True, head_dim=48)
    )
    for options, error in (
        ({"cache_type_k": "q8_0", "cache_type_v": "q8_0"}, UnsupportedDtypeError),
        ({"cache_type_v": "q4_0", "flash_attn": False}, CapacityError),
    ):
        with pytest.raises(error):
            llamacpp_cache(read_gguf(narrow), 1024, **options)
    with pytest.raises(Refused):
        start(narrow, n_ctx=1024, type_k="q8_0", type_v="q8_0")
    with pytest.raises(Refused):
        start(tiny["llama"], n_ctx=1024, type_v="q4_0", flash_attn=False)


def test_a_file_that_llamacpp_refuses_is_refused(tmp_path: Path):
    """Tensors that contradict the metadata are an error for both."""
    plan = build.llama()
    plan.keys["feed_forward_length"] = 768
    path = build.write(tmp_path / "wrong.gguf", plan)
    with pytest.raises(LedgerError):
        read_gguf(path)
    with pytest.raises(Refused, match="error loading model"):
        start(path, n_ctx=512)
