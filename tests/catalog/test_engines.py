"""Engine profiles: defaults as data, by name, alias and device."""

from __future__ import annotations

import json

import pytest

from ledgerkit._data import data_path
from ledgerkit.catalog import _registry
from ledgerkit.catalog import engines as catalog
from ledgerkit.catalog.engines import engines, load_engine
from ledgerkit.catalog.hardware import load_hardware
from ledgerkit.errors import CatalogError, DeploymentError
from ledgerkit.spec.engine import UNLIMITED, EngineProfile

NAMES = ("ktransformers", "llama.cpp", "sglang", "tensorrt-llm", "transformers", "vllm")


def test_the_six_engines_are_there():
    assert engines()["slug"].to_list() == list(NAMES)


@pytest.mark.parametrize("path", sorted(data_path("engines").glob("*.json")), ids=lambda p: p.name)
def test_a_file_is_named_after_engine_and_version(path):
    fields = json.loads(path.read_text(encoding="utf-8"))
    version = fields["version"].split()[-1]
    assert path.name == f"{fields['slug']}-{version}.json"


@pytest.mark.parametrize("name", NAMES)
def test_every_profile_states_version_source_and_judgement(name):
    profile = load_engine(name)
    assert profile.version
    assert all("/" in source for source in profile.source.split("; "))
    # no engine is assumed to hide communication
    assert profile.overlap == 0.0
    assert "judgement" in profile.notes


def test_defaults_that_decide_memory_and_scheduling():
    vllm, sglang, trtllm = map(load_engine, ("vllm", "sglang", "trtllm"))
    assert (vllm.max_num_batched_tokens, vllm.max_num_seqs, vllm.block_size) == (8192, 1024, 16)
    assert (vllm.memory_fraction, vllm.memory_fraction_of) == (0.92, "total")
    assert vllm.memory_fraction_covers == "everything"
    assert sglang.memory_fraction_covers == "weights_and_cache"
    assert (trtllm.memory_fraction, trtllm.memory_fraction_of) == (0.9, "free")
    assert trtllm.memory_fraction_covers == "cache"
    assert vllm.mixed_prefill
    assert not sglang.mixed_prefill
    assert [e.prefix_cache for e in (vllm, sglang, trtllm)] == [True] * 3
    assert (trtllm.max_num_batched_tokens, trtllm.max_num_seqs) == (8192, 2048)
    assert (trtllm.block_size, trtllm.preemption, trtllm.chunked_prefill) == (32, "none", False)


def test_engines_of_the_desk_differ_in_kind():
    llama, hf, kt = map(load_engine, ("llama.cpp", "transformers", "ktransformers"))
    assert (llama.max_num_batched_tokens, llama.max_num_seqs) == (512, 4)
    assert llama.cache_allocation == hf.cache_allocation == "contiguous"
    assert llama.memory_fraction_of == hf.memory_fraction_of == "none"
    assert hf.batching == "static"
    assert not hf.prefix_cache
    assert hf.max_num_seqs == hf.max_num_batched_tokens == UNLIMITED
    assert kt.expert_offload == ("in_place",)
    assert (kt.max_num_batched_tokens, kt.max_num_seqs, kt.block_size) == (256, 4, 256)


def test_graphs_follow_the_published_rule():
    sizes = load_engine("vllm").graph_capture_sizes
    assert sizes[:5] == (1, 2, 4, 8, 16)
    assert (len(sizes), sizes[-1]) == (51, 512)
    assert load_engine("tensorrt-llm").graph_capture_sizes[-3:] == (32, 64, 128)


@pytest.mark.parametrize(
    ("engine", "device", "tokens", "seqs"),
    [
        ("vllm", "h100-sxm-80gb", 8192, 1024),
        ("vllm", "mi300x-192gb", 8192, 1024),
        ("vllm", "a100-sxm-80gb", 2048, 256),
        ("vllm", "rtx-4090-24gb", 2048, 256),
        ("sglang", "h100-sxm-80gb", 8192, 2048),
        ("sglang", "b200-sxm-180gb", 16384, 2048),
        ("sglang", "rtx-4090-24gb", 4096, 2048),
        ("sglang", "t4-16gb", 2048, 2048),
        ("tensorrt-llm", "t4-16gb", 8192, 2048),
    ],
)
def test_defaults_follow_the_device(engine, device, tokens, seqs):
    profile = load_engine(engine).for_device(load_hardware(device))
    assert (profile.max_num_batched_tokens, profile.max_num_seqs) == (tokens, seqs)
    assert profile.slug == engine


def test_a_profile_stands_for_a_device_with_80_gb():
    h100 = load_hardware("h100-sxm-80gb")
    for name in NAMES:
        assert load_engine(name).for_device(h100) == load_engine(name)


def test_sglang_reserves_as_its_formula_says():
    # reserve in MiB: metadata, activations, one tensor-parallel rank, decode graphs, prefill graphs
    reserve = 512 + 1.5 * 8192 + 1024 / 8 + 2 * 256 + 8 * 58
    fraction = load_engine("sglang").memory_fraction
    assert fraction == pytest.approx(1 - reserve / 81559, abs=1e-3)


@pytest.mark.parametrize(
    ("alias", "slug"),
    [("trtllm", "tensorrt-llm"), ("TRT-LLM", "tensorrt-llm"), ("llama-cpp", "llama.cpp"),
     ("hf", "transformers"), (" vLLM ", "vllm"), ("kt", "ktransformers")],
)  # fmt: skip
def test_aliases(alias, slug):
    assert load_engine(alias).slug == slug


def test_unknown_names_and_types():
    with pytest.raises(CatalogError, match="vllm"):
        load_engine("vlm")
    with pytest.raises(CatalogError, match="a name, a dict"):
        load_engine(3)


def described(**changes):
    return load_engine("vllm").model_dump() | changes


def test_a_dict_describes_an_engine():
    mine = load_engine(described(slug="mine", max_num_seqs=8))
    assert (mine.slug, mine.max_num_seqs) == ("mine", 8)
    assert load_engine(mine) is mine


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_num_seqs": 0}, "max_num_seqs"),
        ({"memory_fraction": 1.5}, "memory_fraction"),
        ({"overlap": -0.1}, "overlap"),
        ({"batching": "magic"}, "batching"),
        ({"speed": 1}, "no field 'speed'"),
        ({"graph_capture_sizes": (4, 2)}, "rise"),
        ({"tiers": ({"min_memory_bytes": 0}, {"min_memory_bytes": 1})}, "largest memory"),
    ],
)
def test_bad_profiles_are_named(changes, message):
    with pytest.raises(DeploymentError, match=message):
        load_engine(described(**changes))


def test_a_missing_field_is_named():
    fields = described()
    del fields["block_size"]
    with pytest.raises(DeploymentError, match="block_size"):
        load_engine(fields)


def test_missing_limits_are_null_in_the_table():
    row = engines().filter(slug="transformers").row(0, named=True)
    assert row["max_num_seqs"] is None
    assert row["max_num_batched_tokens"] is None
    assert engines().filter(slug="vllm")["max_num_seqs"].item() == 1024


class _Point:
    name, value = "extra", "extra:engines"

    def __init__(self, result):
        self._result = result

    def load(self):
        return lambda: self._result


@pytest.fixture
def register(monkeypatch):
    caches = (_registry.registered, catalog._profiles, catalog._names)

    def do(result):
        monkeypatch.setattr(_registry, "entry_points", lambda **_: [_Point(result)])
        for cached in caches:
            cached.cache_clear()

    yield do
    monkeypatch.undo()
    for cached in caches:
        cached.cache_clear()


def test_other_distributions_add_engines(register):
    register([described(slug="mine", aliases=("my-engine",))])
    assert isinstance(load_engine("my-engine"), EngineProfile)
    assert "mine" in engines()["slug"].to_list()


def test_a_registered_name_that_is_taken_is_refused(register):
    register([described()])
    with pytest.raises(CatalogError, match="one name"):
        load_engine("vllm")
