"""Every architecture: accounts, kinds of layers, quantized mixtures, and what is refused."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import gguf
import pytest

from ledgerkit import Deployment, Workload, ledger
from ledgerkit.errors import (
    CheckpointError,
    ConfigError,
    DeploymentError,
    UnsupportedArchitectureError,
)
from ledgerkit.readers.config import read_config
from ledgerkit.readers.gguf import read_gguf, read_gguf_file
from ledgerkit.readers.gguf_booking import book
from ledgerkit.readers.gguf_config import ARCHITECTURES, config_of
from ledgerkit.readers.gguf_header import GgufTensor
from ledgerkit.readers.gguf_metadata import Metadata
from ledgerkit.spec.attention import LatentAttention, SoftmaxAttention, StateAttention
from ledgerkit.spec.feed_forward import MoeFfn
from ledgerkit.spec.model import Model
from tests.gguf import build
from tests.gguf.build import PLANS, Type


def config_for(plan: build.Plan) -> dict:
    """The config that the reader makes of a plan, without a file."""
    values = {"general.architecture": plan.architecture}
    values |= {f"{plan.architecture}.{key}": tuple(value) if isinstance(value, list) else value
               for key, value in plan.keys.items()}  # fmt: skip
    tensors = {name: GgufTensor(name, ne, "f16", 0, 0) for name, ne in plan.tensors.items()}
    return config_of(Metadata(values, tensors, "plan"))


def totals(model: Model) -> Counter:
    """Elements by account and by all that a step needs to know about a tensor."""
    books: Counter = Counter()
    for weight, count in model.booked_weights():
        key = (weight.ledger, weight.account, weight.use, weight.split, weight.routed)
        books[key] += weight.elements * count
    return books


def unread(plan: build.Plan) -> set[str]:
    """Keys and values of the layers of Gemma 3n that read another layer's cache."""
    shared = plan.keys.get("attention.shared_kv_layers", 0) * (plan.architecture == "gemma3n")
    first = plan.keys["block_count"] - shared
    return {f"blk.{layer}.attn_{part}.weight" for layer in range(first, first + shared)
            for part in ("k", "v", "k_norm")}  # fmt: skip


@pytest.mark.parametrize("name", PLANS)
def test_all_tensors_are_booked_as_the_family_books_them(name: str, tiny: dict[str, Path]):
    plan, model, file = PLANS[name](), read_gguf(tiny[name]), read_gguf_file(tiny[name])
    copies = {tensor.name for tensor, _ in book(file.tensors, own_heads=name == "step35_mtp")[1]}
    assert copies <= {"rope_freqs.weight", "blk.4.nextn.embed_tokens.weight",
                      "blk.4.nextn.shared_head_head.weight"}  # fmt: skip
    assert {t.name for t in file.tensors} == plan.tensors.keys()
    constants = copies | unread(plan)
    elements = {n: math.prod(ne) for n, ne in plan.tensors.items() if n not in constants}
    mtp = [*model.mtp.group.weights, *model.mtp.extra] if model.mtp else []
    mtp *= model.mtp.num_layers if model.mtp else 1
    assert model.parameter_count + sum(w.elements for w in mtp) == sum(elements.values())
    assert model.weight_bytes + sum(w.bytes for w in mtp) == sum(
        size * (4 if build.plain_type(n, plan.tensors[n]) is Type.F32 else 2)
        for n, size in elements.items()
    )
    family = read_config(config_for(plan))
    assert totals(model) == totals(family)
    assert model.num_hidden_layers == plan.keys["block_count"] - plan.keys.get(
        "nextn_predict_layers", 0
    )
    assert model.vocab_size == build.VOCAB
    assert model.active_parameter_count == family.active_parameter_count
    for context in (1, 300, 5000):
        assert model.cache_bytes(context) == family.cache_bytes(context)
    if family.mtp is None:
        assert model.mtp is None
        return
    assert model.mtp is not None
    assert model.mtp.parameter_count == family.mtp.parameter_count
    first = model.num_hidden_layers
    assert model.mtp.group.layers == tuple(range(first, first + model.mtp.num_layers))
    assert (model.mtp.group.attention, model.mtp.group.ffn) == (
        family.mtp.group.attention, family.mtp.group.ffn)  # fmt: skip


SAME = {"bailing_moe": "sarvam_moe", "mimo_v2": "mimo_v2_flash", "qwen2_vl_text": "qwen2",
        "qwen3_vl_text": "qwen3", "qwen3_vl_moe_text": "qwen3_moe"}  # fmt: skip
"""Model types under which transformers knows the same layers."""
BARE = {"mistral4"}
"""Text models that transformers has without their heads."""
ELSEWHERE = {"mixtral_single_experts", "step35", "step35_mtp", "dbrx", "deci"}
"""The first is Mixtral once more; transformers has Step's text model in no list, DBRX's config in
several classes, and no class for the last."""


@pytest.mark.oracle
@pytest.mark.parametrize("name", sorted(PLANS.keys() - ELSEWHERE))
def test_transformers_counts_as_many_parameters(name: str, tiny: dict[str, Path]):
    """The same fields, given to the model class of the hub, make as many parameters."""
    torch = pytest.importorskip("torch")
    from transformers import AutoModel, AutoModelForCausalLM
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    config = config_for(PLANS[name]())
    config["model_type"] = SAME.get(config["model_type"], config["model_type"])
    bare = config["model_type"] in BARE
    tokens = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    stated = CONFIG_MAPPING[config.pop("model_type")](**config, **tokens)
    with torch.device("meta"):
        model = (AutoModel if bare else AutoModelForCausalLM).from_config(stated)
    counted = sum(p.numel() for p in model.parameters())
    counted += build.VOCAB * stated.hidden_size if bare else 0
    counted += sum(b.numel() for n, b in model.named_buffers()
                   if n.endswith(("correction_bias", "expert_bias", "layer_scalar")))  # fmt: skip
    assert read_gguf(tiny[name]).parameter_count == counted


def test_kinds_of_layers(tiny: dict[str, Path]):
    def windows(name: str) -> list[int | None]:
        model = read_gguf(tiny[name])
        kinds = {layer: group.attention for group in model.groups for layer in group.layers}
        return [kinds[layer].limit for layer in range(model.num_hidden_layers)]

    assert windows("llama") == [None] * 4
    assert windows("gemma2") == [512, None, 512, None]
    assert windows("gemma3") == [512, 512, 512, 512, 512, None, 512, 512]
    assert windows("gpt_oss") == [128, None, 128, None]
    assert windows("gemma4") == [512, 512, None, 512, 512, None]
    latent = read_gguf(tiny["deepseek2"]).groups[0].attention
    assert isinstance(latent, LatentAttention)
    assert (latent.q_lora_rank, latent.kv_lora_rank, latent.qk_nope_head_dim) == (96, 192, 64)
    assert latent.elements_per_token == 192 + 32
    moe = read_gguf(tiny["deepseek2"]).groups[1].ffn
    assert isinstance(moe, MoeFfn)
    assert (moe.num_experts, moe.num_experts_per_tok, moe.shared_intermediate_size) == (8, 2, 128)


def test_hybrids(tiny: dict[str, Path]):
    model = read_gguf(tiny["qwen35moe"])
    kinds = {layer: group.attention for group in model.groups for layer in group.layers}
    assert [kinds[layer].kind for layer in range(8)] == ["state", "state", "state", "softmax"] * 2
    state = kinds[0]
    assert isinstance(state, StateAttention)
    assert (state.num_heads, state.key_dim, state.value_dim, state.num_groups) == (4, 64, 64, 2)
    assert (state.conv_channels, state.conv_kernel) == (2 * 2 * 64 + 4 * 64, 4)
    chunked = read_gguf(tiny["llama4"])
    assert [group.attention.limit for group in chunked.groups] == [8192, 8192, None]


def test_gemma4_heads_and_shared_caches(tiny: dict[str, Path]):
    wide = read_gguf(tiny["gemma4"])
    by_window = {group.attention.limit: group.attention for group in wide.groups}
    assert (by_window[512].num_key_value_heads, by_window[512].head_dim) == (4, 64)
    assert (by_window[None].num_key_value_heads, by_window[None].head_dim) == (2, 128)
    small = read_gguf(tiny["gemma4_e"])
    stores = {layer: group.attention.stores_kv for group in small.groups for layer in group.layers}
    assert [stores[layer] for layer in range(6)] == [True] * 3 + [False] * 3
    assert small.parameters["ffn_mlp", "per_layer_embedding"] == (
        32 * 6 * build.VOCAB + 256 * 32 * 6 + 6 * 2 * 256 * 32
    )


def test_a_fused_projection_is_split_as_its_parts_are(tiny: dict[str, Path]):
    rows = [w for w in read_gguf(tiny["phi3"]).groups[0].weights if "attn_qkv" in w.name]
    assert [(w.shape, w.split) for w in rows] == [
        ((256, 256), "tp"), ((128, 256), "kv_heads"), ((128, 256), "kv_heads")
    ]  # fmt: skip


def test_experts_stored_one_by_one_are_copies(tiny: dict[str, Path]):
    weights = read_gguf(tiny["mixtral_single_experts"]).groups[0].weights
    experts = [w for w in weights if w.account == "routed_experts"]
    assert {(w.name, w.copies, w.routed) for w in experts} == {
        (f"blk.{{layer}}.ffn_{part}.{{expert}}.weight", 4, True) for part in ("gate", "up", "down")
    }


MIXTURES: dict[str, Callable[[str], Type]] = {
    "q4_k_m": lambda name: Type.Q6_K if "ffn_down" in name and ".1." in name else Type.Q4_K,
    "iq": lambda name: Type.IQ2_XXS if "ffn" in name else Type.IQ4_NL,
    "ternary": lambda name: Type.TQ1_0 if "attn" in name else Type.TQ2_0,
    "mxfp4": lambda name: Type.MXFP4 if "_exps" in name else Type.Q8_0,
}


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("name", ["qwen3", "gpt_oss", "deepseek2", "gemma4"])
def test_quantized_mixtures_have_the_bytes_of_their_tensors(
    name: str, mixture: str, tmp_path: Path
):
    plan, choose = PLANS[name](), build.quantized(MIXTURES[mixture])
    path = build.write(tmp_path / "mixture.gguf", plan, choose)
    model, oracle = read_gguf(path), gguf.GGUFReader(path)
    sizes = {t.name: int(t.n_bytes) for t in oracle.tensors if t.name != "rope_freqs.weight"}
    assert model.weight_bytes == sum(sizes.values())
    if name != "deepseek2":
        return
    experts = sum(size for n, size in sizes.items() if "_exps" in n)
    assert model.weight_bytes_by_account["ffn_mlp", "routed_experts"] == experts


def test_layers_of_different_types_are_different_groups(tmp_path: Path):
    choose = build.quantized(MIXTURES["q4_k_m"])
    model = read_gguf(build.write(tmp_path / "m.gguf", PLANS["qwen3"](), choose))
    assert [group.layers for group in model.groups] == [(0, 2, 3), (1,)]
    assert isinstance(model.groups[0].attention, SoftmaxAttention)
    assert model.groups[0].attention == model.groups[1].attention


def test_nvfp4_counts_the_scale_beside_it(tmp_path: Path):
    """36 bytes for 64 elements, and one F32 scale for each tensor or expert."""
    plan = PLANS["qwen3moe"]()
    matrices = {n: ne for n, ne in plan.tensors.items() if "_exps" in n or "attn_q.w" in n}
    for name, ne in matrices.items():
        plan.tensors[name.replace(".weight", ".scale")] = (ne[2] if len(ne) > 2 else 1,)
        plan.tensors[name.replace(".weight", ".input_scale")] = (1,)
    path = build.write(
        tmp_path / "nvfp4.gguf", plan,
        lambda name, ne: Type.NVFP4 if name in matrices else build.plain_type(name, ne),
    )  # fmt: skip
    model, file = read_gguf(path), read_gguf_file(path)
    assert model.parameter_count == sum(
        math.prod(ne) for n, ne in plan.tensors.items() if not n.endswith("scale")
    )
    experts = model.weight_bytes_by_account["ffn_mlp", "routed_experts"]
    assert experts == 4 * 3 * 8 * (128 * 256 * 36 // 64 + 4)
    assert {tensor.name for tensor, _ in file.unbooked} == {
        n for n in plan.tensors if n.endswith("input_scale")
    }
    assert model.weight_bytes + 4 * len(matrices) == file.tensor_bytes
    assert any("scale of the activations" in note for note in model.notes)


def changed(name: str, change: Callable[[build.Plan], object], tmp_path: Path) -> Path:
    plan = PLANS[name]()
    change(plan)
    return build.write(tmp_path / "changed.gguf", plan)


CONTRADICTIONS = {
    "a tensor is missing": ("llama", lambda p: p.tensors.pop("blk.2.attn_k.weight")),
    "a norm is missing": ("llama", lambda p: p.tensors.pop("output_norm.weight")),
    "a layer is missing": ("llama", lambda p: p.keys.update(block_count=5)),
    "a layer too many": ("llama", lambda p: p.keys.update(block_count=3)),
    "another width": ("qwen3", lambda p: p.keys.update(feed_forward_length=768)),
    "other heads": ("qwen3", lambda p: p.keys.update({"attention.head_count": 8})),
    "fewer experts": ("mixtral", lambda p: p.keys.update(expert_count=4)),
    "a bias that should not be": ("qwen3moe", lambda p: p.add("blk.1.", attn_q__bias=(256,))),
    "a q/k norm too many": ("llama", lambda p: p.add("blk.0.", attn_q_norm=(64,))),
    "another latent": ("deepseek2", lambda p: p.keys.update({"attention.value_length": 64})),
    "no embedding": ("llama", lambda p: p.tensors.pop("token_embd.weight")),
    "fewer rows than tokens": (
        "llama", lambda p: p.tensors.update({"token_embd.weight": (256, 100)})),
}  # fmt: skip


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_tensors_that_contradict_the_metadata_are_refused(case: str, tmp_path: Path):
    name, change = CONTRADICTIONS[case]
    with pytest.raises(CheckpointError, match=r"changed\.gguf"):
        read_gguf(changed(name, change, tmp_path))


def test_a_key_that_is_not_stated_is_named_and_shown_as_missing(tmp_path: Path):
    path = changed("llama", lambda p: p.keys.pop("embedding_length"), tmp_path)
    with pytest.raises(CheckpointError, match=r"llama\.embedding_length is not stated") as caught:
        read_gguf(path)
    assert "given: None" in str(caught.value)


def test_equal_sums_in_the_wrong_layers_are_refused(tmp_path: Path):
    def swap(plan: build.Plan) -> None:
        plan.tensors["blk.0.ffn_up.weight"] = (256, 512 + 64)
        plan.tensors["blk.1.ffn_up.weight"] = (256, 512 - 64)

    with pytest.raises(CheckpointError, match="in layer 0 contradict"):
        read_gguf(changed("llama", swap, tmp_path))


def test_an_unknown_tensor_is_listed_with_its_bytes(tmp_path: Path):
    path = changed("llama", lambda plan: plan.add("blk.1.", mystery=(64, 32)), tmp_path)
    file = read_gguf_file(path)
    assert [(t.name, reason) for t, reason in file.unbooked if "mystery" in t.name] == [
        ("blk.1.mystery.weight", "no account is known for this tensor name")
    ]
    assert any("4096 B" in note and "mystery" in note for note in read_gguf(path).notes)


def test_keys_of_a_shared_cache_are_listed(tmp_path: Path):
    """Checkpoints of Gemma carry projections that no layer reads."""

    def stale(plan: build.Plan) -> None:
        plan.add("blk.4.", attn_k=(256, 64), attn_v=(256, 64), attn_k_norm=(64,))

    path = changed("gemma4_e", stale, tmp_path)
    assert (
        read_gguf(path).parameter_count
        == read_gguf(build.write(tmp_path / "clean.gguf", PLANS["gemma4_e"]())).parameter_count
    )
    assert any("another layer's cache" in note for note in read_gguf(path).notes)


def test_unknown_keys_and_architectures_are_named(tmp_path: Path):
    with pytest.raises(UnsupportedArchitectureError, match=r"llama\.mixture_of_depths"):
        read_gguf(changed("llama", lambda p: p.keys.update(mixture_of_depths=2), tmp_path))
    with pytest.raises(UnsupportedArchitectureError, match="not causal"):
        read_gguf(changed("qwen3", lambda p: p.keys.update({"attention.causal": False}), tmp_path))
    plan = PLANS["llama"]()
    plan.architecture = "rwkv7"
    with pytest.raises(UnsupportedArchitectureError, match="rwkv7") as caught:
        read_gguf(build.write(tmp_path / "other.gguf", plan))
    assert "gpt-oss" in str(caught.value)
    assert {plan().architecture for plan in PLANS.values()} == ARCHITECTURES.keys()


def test_projectors_and_adapters_are_no_models(tmp_path: Path):
    writer = gguf.GGUFWriter(tmp_path / "mmproj.gguf", "clip")
    writer.add_type("mmproj")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(UnsupportedArchitectureError, match="no language model"):
        read_gguf(tmp_path / "mmproj.gguf")


def test_a_variant_cannot_be_derived_from_real_tensors(tiny: dict[str, Path]):
    with pytest.raises(ConfigError, match="not read from a config"):
        read_gguf(tiny["llama"]).replace(num_hidden_layers=2)


@pytest.mark.parametrize("name", PLANS)
def test_a_ledger_of_every_architecture_is_made_on_one_rank_and_on_two(name, tiny) -> None:
    """Tensors of a file have names of their own: no cost may depend on the others'."""
    model = read_gguf(tiny[name])
    work = Workload(prompt_tokens=8, output_tokens=4)
    assert ledger(model, "h100-sxm-80gb", Deployment(), work).tpot_s > 0
    refused = ""
    try:
        assert ledger(model, "h100-sxm-80gb", Deployment(tp=2), work).tpot_s > 0
    except DeploymentError as error:
        refused = str(error)
    assert not refused or "tp must divide" in refused
