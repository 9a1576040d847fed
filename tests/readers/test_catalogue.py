"""The built-in models against literals that were written down independently of the reader."""

from __future__ import annotations

import json

import pytest

from ledgerkit._data import data_directory
from ledgerkit.catalog import models as module
from ledgerkit.catalog.models import load_model, model_slugs, models
from ledgerkit.errors import CatalogError, ConfigError, LedgerError
from ledgerkit.readers.config import read_config

K3_EXPERTS = 92 * 896 * 3 * 3072 * 3584
K3_TOWERS = 447_358_976
# From the publishers' checkpoint headers, papers and tables, and from hand counts.
PARAMETERS = {
    "gpt2": 124_439_808,
    "falcon-7b": 6_921_720_704,
    "llama-2-7b": 6_738_415_616,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.2-1b": 1_235_814_400,
    "smollm2-135m": 134_515_008,
    "mistral-7b-v0.1": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-0.6b": 751_632_384 - 155_582_464,  # the file stores the tied head twice
    "qwen3-8b": 8_190_735_360,
    "qwen3-30b-a3b": 30_532_122_624,
    "gemma-2-2b": 2_024_517_888 + 256_000 * 2304,  # non-embedding of the report + the table
    "gemma-2-27b": 26_047_480_320 + 256_000 * 4608,
    "gemma-4-26b-a4b": 25_233_141_790,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v3": 671_026_419_200,
    "kimi-k2.6": 1_026_408_232_448,
    "mimo-v2.5-pro": 1_023_244_718_976 - 1_934_715_264 - 61_877_376,  # MTP and fp8 scales
    "mimo-7b": 7_833_409_536 - 210_790_400,
    "kimi-linear-48b-a3b": 49_122_681_728,
    "qwen3-next-80b-a3b": 81_324_862_720 - 1_650_471_424,
    "glm-5.2": 753_329_940_480 - 9_952_920_576,
    "glm-4.7-flash": 31_221_488_576 - 643_706_176 - 2 * 154_880 * 2048,
    # stored, experts packed two to a byte with a scale byte for 32; without towers and padding
    "kimi-k3": 1_503_647_073_024 + K3_EXPERTS - K3_EXPERTS * 17 // 32 - K3_TOWERS - 69 * 32,
}
# Bytes per token in bf16: elements of the published cache descriptions, times two.
KV_BYTES_PER_TOKEN = {
    "llama-2-7b": 2 * 32 * 32 * 128 * 2,
    "llama-3.1-8b": 131_072,
    "falcon-7b": 2 * 32 * 64 * 2,
    "deepseek-v3": 61 * 576 * 2,
    "deepseek-v3.2": 85_888,
    "glm-5.2": 95_232,
    "kimi-k2.6": 70_272,
    "gemma-4-26b-a4b": 20_480,
    "gpt-oss-120b": 36_864,
    "mimo-v2-flash": 23_040,
    "step3": 62_464,
    "kimi-linear-48b-a3b": 8_064,
    "qwen3-next-80b-a3b": 24_576,
    "minimax-m3": 137_472,
}
GIB = 2**30
# Sums of the published safetensors headers in GiB, MTP included where the file holds it.
FILE_GIB = {
    "deepseek-v3": (641.29, 2 * 129_280 * 7168 * 2),  # + copies of embedding and head
    "mimo-v2.5-pro": (962.40, 0),
    "kimi-k2.6": (554.27, 2 * (416_866_032 + 54_277_888) + 60 * 384 * 3 * 8),  # towers, shapes
    "deepseek-v4-pro": (805.32, 0),
    "glm-5.2-fp8": (703.72, 0),
    "minimax-m2.7": (214.32, 0),
    "gpt-oss-20b": (12.82, 0),
    "kimi-k3": (1453.66, 2 * K3_TOWERS + 4 * 69 * 32),
    "qwen3-next-80b-a3b": (151.48, 0),
}


@pytest.mark.parametrize("slug", sorted(PARAMETERS))
def test_parameters(slug):
    assert load_model(slug).parameter_count == PARAMETERS[slug]


@pytest.mark.parametrize("slug", sorted(KV_BYTES_PER_TOKEN))
def test_cache_bytes_per_token(slug):
    assert load_model(slug).kv_bytes_per_token() == KV_BYTES_PER_TOKEN[slug]


@pytest.mark.parametrize("slug", sorted(FILE_GIB))
def test_weight_bytes_equal_the_published_files(slug):
    model = load_model(slug)
    gib, more = FILE_GIB[slug]
    mtp = model.mtp
    extra = 0.0
    if mtp is not None:
        one = sum(weight.bytes for weight in (*mtp.group.weights, *mtp.extra))
        extra = one * mtp.num_layers
    assert (model.weight_bytes + extra + more) / GIB == pytest.approx(gib, abs=0.005)


def test_gpt_oss_is_exact_to_the_byte():
    assert load_model("gpt-oss-120b").weight_bytes == 65_248_815_744


def test_cache_at_128k_context():
    at = 131_072
    assert load_model("gemma-4-26b-a4b").cache_bytes(at) / GIB == pytest.approx(2.695, abs=5e-4)
    assert load_model("mimo-v2-flash").cache_bytes(at) / GIB == pytest.approx(2.836, abs=5e-4)
    assert load_model("gpt-oss-120b").cache_bytes(at) / GIB == pytest.approx(4.504, abs=5e-4)


def test_layouts_of_the_v32_cache():
    model = load_model("deepseek-v3.2")
    assert model.kv_bytes_per_token("bf16") == 85_888
    assert model.kv_bytes_per_token("bf16", indexer_dtype="fp8") == 78_324
    assert model.kv_bytes_per_token("fp8_ds_mla") == 48_068


def test_nearest_stated_totals_are_within_rounding_or_explained():
    frame = models()
    stated = frame.drop_nulls("official_parameters")
    assert stated.height >= 65
    for row in stated.iter_rows(named=True):
        assert row["official_source"].startswith("https://"), row["slug"]
        assert row["difference"] == row["parameters"] - row["official_parameters"]
        assert row["difference_reason_en"], row["slug"]
        assert row["difference_reason_zh"], row["slug"]
        # 20 % would be a reading error, not a matter of rounding; E4B names leave tables out
        assert abs(row["difference"]) < 0.2 * row["official_parameters"], row["slug"]


def test_every_built_in_model_has_a_public_source_and_a_fidelity():
    for row in models().iter_rows(named=True):
        assert row["source"].startswith(("https://", "http")), row["slug"]
        assert row["fidelity"], row["slug"]


def test_the_article_and_its_families_are_there():
    slugs = set(model_slugs())
    assert {"deepseek-v3", "gemma-4-26b-a4b", "kimi-k2.6", "mimo-v2.5-pro"} <= slugs
    assert len(slugs) >= 60
    kinds = set(models()["model_type"])
    assert len(kinds) >= 35


def test_files_are_small_and_in_config_field_names():
    for path in (data_directory() / "models").glob("*.json"):
        assert path.stat().st_size < 40_000, path.name
        content = json.loads(path.read_text(encoding="utf-8"))
        assert "model_type" in content, path.name
        assert {"_name", "_source", "_fidelity", "_official"} <= set(content), path.name


def test_a_model_is_found_by_hub_id_alias_and_any_case():
    by_slug = load_model("deepseek-v3")
    assert load_model("deepseek-ai/DeepSeek-V3") is by_slug
    assert load_model("DeepSeek-V3") is by_slug
    assert load_model(by_slug) is by_slug
    assert load_model("meta-llama-3.1-8b").slug == "llama-3.1-8b"


def test_unknown_name_suggests_close_ones():
    with pytest.raises(CatalogError, match="deepseek-v3"):
        load_model("deepsek-v3")


@pytest.mark.parametrize(
    "ref", [None, 3, 1.5, ["llama-3.1-8b"], "", "no/such/file.json", "./nothing"]
)
def test_impossible_references_are_refused(ref):
    with pytest.raises(LedgerError):
        load_model(ref)


def test_file_directory_and_dict_give_the_same_model(tmp_path):
    config = json.loads((data_directory() / "models" / "qwen3-8b.json").read_text("utf-8"))
    plain = {name: value for name, value in config.items() if not name.startswith("_")}
    folder = tmp_path / "Qwen3-8B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(plain), encoding="utf-8")
    expected = load_model("qwen3-8b").parameter_count
    for ref in (folder, str(folder), folder / "config.json", plain):
        assert load_model(ref).parameter_count == expected
    assert load_model(folder).slug == "qwen3-8b"


def test_entry_points_add_models(monkeypatch):
    class Point:
        name = "my-model"
        value = "package:config"

        @staticmethod
        def load():
            return lambda: {
                "model_type": "llama",
                "hidden_size": 64,
                "intermediate_size": 96,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "vocab_size": 100,
                "dtype": "bfloat16",
            }

    class Broken(Point):
        @staticmethod
        def load():
            raise ImportError("no module named package")

    def entry_points(point):
        return lambda group: [point] if group == "ledgerkit.models" else []

    def forget():
        module._configs.cache_clear()
        module._aliases.cache_clear()

    try:
        monkeypatch.setattr(module.metadata, "entry_points", entry_points(Point))
        forget()
        assert load_model("my-model").num_hidden_layers == 2
        monkeypatch.setattr(module.metadata, "entry_points", entry_points(Broken))
        forget()
        with pytest.raises(CatalogError, match="my-model"):
            load_model("my-model")
    finally:
        monkeypatch.undo()
        forget()


def test_a_wrapper_without_its_text_part_is_refused():
    with pytest.raises(ConfigError, match="text_config"):
        read_config({"model_type": "gemma3"})
