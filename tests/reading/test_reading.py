"""The five-step reading: what it says of known models, and that it says it of every model."""

from __future__ import annotations

import ast
import io
import json
import urllib.request
from html.parser import HTMLParser

import pytest

import ledgerkit as lk
from ledgerkit import text
from ledgerkit.__main__ import main
from ledgerkit._readings import words
from ledgerkit._readings.document import Heading, Paragraph, Table, markdown, page
from ledgerkit._readings.fields import _support, engine_support
from ledgerkit._readings.structures import SOURCES
from ledgerkit.catalog.models import model_slugs
from ledgerkit.errors import LedgerError, TechniqueError
from ledgerkit.spec.axes import LEDGERS
from tests.gguf import build

KINDS = (
    "deepseek-v3.2", "gemma-4-26b-a4b", "kimi-k2.6", "mimo-v2.5-pro", "llama-3.1-8b", "gpt2",
    "qwen3-next-80b-a3b-instruct", "gemma-4-e4b-it", "nemotron-h-56b-base-8k", "deepseek-v4-pro",
)  # fmt: skip
TINY = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "vocab_size": 100,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 512, "architectures": ["NobodyKnowsForCausalLM"],
}  # fmt: skip


@pytest.fixture(scope="module")
def kimi():
    return lk.read_model("kimi-k2.6")


@pytest.fixture(scope="module")
def gemma():
    return lk.read_model("gemma-4-26b-a4b")


def field(reading, name, language="en"):
    return [f for f in reading.basic_fields(language) if f.name == name]


# step 1 ----------------------------------------------------------------------------------------


def test_the_basic_fields_of_kimi(kimi):
    values = {f.name: f for f in kimi.basic_fields("en")}
    assert values["total"].number == 1_026_408_232_448
    assert values["active"].number == pytest.approx(31.69e9, rel=1e-3)
    assert {name: values[name].value for name in ("layers", "heads", "experts", "topk")} == {
        "layers": "61", "heads": "64", "experts": "384", "topk": "8"
    }  # fmt: skip
    assert values["context"].number == 262_144
    assert values["experts"].where == "text_config.n_routed_experts"
    assert values["experts"].origin == "config"
    assert values["total_published"].value == "1T"
    assert values["total_published"].where.startswith("https://")
    assert "576" in values["attention"].value
    assert "int4_g32" in values["precision"].value


def test_a_value_that_the_class_supplies_says_so():
    (heads,) = field(lk.read_model({**TINY, "num_key_value_heads": None}), "kv_heads")
    assert heads.value == "4"
    assert heads.origin in ("class default", "derived", "config")


def test_engine_support_is_sourced_or_not_stated(kimi):
    assert [f.value for f in field(kimi, "engine")] == ["sglang"]
    assert all(f.where for f in field(kimi, "engine"))
    (unknown,) = field(lk.read_model(TINY), "engine")
    assert (unknown.value, unknown.origin, unknown.where) == ("not stated", "not_stated", "")
    for config in (None, {}, {"architectures": None}, {"architectures": [3]}):
        assert engine_support(config) == ()


def test_every_row_of_engine_support_has_a_source_and_a_profile():
    known = set(lk.engines()["slug"])
    rows = [row for found in _support().values() for row in found]
    assert len(rows) > 100
    for engine, source in rows:
        assert engine in known
        assert source.startswith(("https://", "vllm-project/", "huggingface/transformers@"))


# steps 2 to 4 ----------------------------------------------------------------------------------


def test_structures_of_the_articles_three_routes(kimi, gemma):
    deepseek = lk.read_model("deepseek-v3")
    assert {s.id: s.ledger for s in deepseek.structures} == {
        "mla": "attention_kv", "dense": "ffn_mlp", "moe": "ffn_mlp", "shared_experts": "ffn_mlp",
        "node_limited": "scheduling", "weight_quantization": "ffn_mlp", "mtp": "scheduling",
    }  # fmt: skip
    window = next(s for s in gemma.structures if s.id == "window")
    assert (window.layers, window.numbers["window"], window.numbers["others"]) == (25, "1,024", 5)
    assert [s.id for s in kimi.structures] == [
        "mla", "dense", "moe", "shared_experts", "expert_quantization"
    ]  # fmt: skip


def test_what_stands_beside_the_experts_and_what_is_no_mixer(gemma):
    beside = next(s for s in gemma.structures if s.id == "dense_beside")
    assert beside.numbers["width"] == "2,112"
    nemotron = lk.read_model("nemotron-h-56b-base-8k")
    linear = next(s for s in nemotron.structures if s.id == "linear")
    assert (linear.layers, linear.numbers["others"]) == (54, 10)
    assert nemotron.misreadings[-1].numbers["all_layers"] == 64
    assert lk.read_model("deepseek-v4-pro").misreadings[-1].numbers["window"] == 128
    fp8 = next(s for s in lk.read_model("mimo-v2-flash").structures if "quant" in s.id)
    assert fp8.also == ("attention_kv",)


def test_a_window_as_long_as_the_context_is_none():
    assert "window" not in {s.id for s in lk.read_model("phi-3.5-mini-instruct").structures}
    assert "window" in {s.id for s in lk.read_model("mistral-7b-v0.1").structures}


def test_what_mla_saves_and_pays_in_deepseek():
    reading = lk.read_model("deepseek-v3")
    balance = next(b for b in reading.balances if b.structure.id == "mla")
    cache = balance.transfer.table.filter(phase="hold", resource="resident", account="cache")
    # 8 ranks share 128 heads of 192 + 128 elements; each holds the whole latent of 576
    assert (cache["before"] / cache["after"]).item() == pytest.approx(128 * 320 / 8 / 576)
    saved = reading.savings.filter(structure="mla", phase="hold")
    assert saved["change"].item() < 0
    paid = reading.costs.filter(structure="mla", phase="decode", resource="compute")
    assert paid["ledger"].item() == "attention_kv"
    assert paid["change"].item() > 0


def test_experts_save_against_equal_total_and_pay_against_equal_active(kimi):
    saved = kimi.savings.filter(structure="moe", against="equal_total", resource="compute")
    assert set(saved["phase"]) == {"prefill", "decode"}
    paid = kimi.costs.filter(structure="moe", against="equal_active", resource="resident")
    assert paid["after"].item() / paid["before"].item() > 20
    assert (kimi.costs["change"] > 0).all()
    assert (kimi.savings["change"] < 0).all()
    assert set(kimi.costs["ledger"]) <= set(LEDGERS)


def test_a_structure_without_counterpart_says_why(gemma, monkeypatch):
    from ledgerkit._readings import balance

    def refuse(*_, **__):
        raise TechniqueError("nothing stands in for it")

    monkeypatch.setattr(balance, "transfer", refuse)
    found = balance.balances(gemma.point, gemma.structures)
    assert found
    assert all(b.transfer is None and "stands in" in b.reason and b.rows() == [] for b in found)


# step 5 and the checks -------------------------------------------------------------------------


def test_the_load_test_can_be_pasted(kimi):
    code = kimi.load_test_code
    tree = ast.parse(code)
    planned = ast.Module(body=tree.body[:3], type_ignores=[])
    scope = {}
    exec(compile(planned, "pasted", "exec"), scope)  # noqa: S102
    assert scope["plan"].fingerprint == kimi.load_test.fingerprint
    assert {cell.concurrency for cell in scope["plan"].cells} == {1, 4, 8, 16}


def test_active_parameters_are_not_memory(kimi):
    check = kimi.misreadings[0]
    assert (check.id, check.verdict) == ("active_memory", "refuted")
    # 32 of 1,026 billion, and the experts are in 4.5 bit
    assert 15 < check.numbers["ratio"] < 32
    assert "1.03T" in words.finding(check, "en")
    assert lk.read_model("llama-3.1-8b").misreadings[0].verdict == "absent"


def test_a_long_context_is_not_cheap(kimi):
    check = kimi.misreadings[1]
    assert check.verdict == "refuted"
    one = kimi.model.cache_bytes(check.numbers["longest"])
    assert check.numbers["cache_bytes"] == one
    assert check.numbers["times"] > 1.2
    assert lk.read_model("gpt2").misreadings[1].verdict == "absent"


def test_what_runs_at_home(kimi, gemma):
    home = words.finding(gemma.misreadings[2], "en")
    # 50 GB in bf16; in 4.5 bit 14 GB, but rows of 704 are kept in 5.5 bit and what vLLM needs adds
    assert "RTX 4090 24 GB does not hold it" in home
    assert "as q4_k it may not fit (needs about 18.6 GB)" in home
    shallow = lk.read_model(lk.load_model("qwen3-32b").replace(num_hidden_layers=32))
    assert "as q4_k it fits" in words.finding(shallow.misreadings[2], "en")
    assert "q4_k" not in words.finding(lk.read_model("deepseek-v4-pro").misreadings[2], "en")
    needs = {row["device"]: row["fits"] for row in kimi.misreadings[2].numbers["devices"]}
    assert set(needs.values()) == {"no"}
    small = lk.read_model("qwen3-0.6b").misreadings[2]
    assert small.verdict == "holds"
    assert "token/s" in words.finding(small, "en")


def test_experts_are_not_always_faster(gemma):
    check = gemma.misreadings[3]
    rows = check.numbers["rows"]
    assert [row["concurrency"] for row in rows] == [1, 8, 64, 256]
    assert all(row["equal_total"] < row["equal_active"] for row in rows)
    assert check.verdict == "refuted"
    assert any(row["equal_active"] > 1 for row in rows)


def test_recall_beyond_a_window_is_a_test_to_run(gemma, kimi):
    check = gemma.misreadings[4]
    assert check.verdict == "test"
    assert (check.numbers["layers"], check.numbers["full_layers"]) == (25, 5)
    assert min(check.numbers["depths"]) < 1024 < max(check.numbers["depths"]) < 262_144
    assert kimi.misreadings[4].verdict == "absent"
    assert lk.read_model("jamba-v0.1").misreadings[4].numbers["full_layers"] == 4


# every model -----------------------------------------------------------------------------------


class Balanced(HTMLParser):
    void = frozenset({"meta"})

    def __init__(self):
        super().__init__()
        self.open, self.rows = [], 0

    def handle_starttag(self, tag, _):
        if tag not in self.void:
            self.open.append(tag)
        self.rows += tag == "tr"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("slug", KINDS)
def test_a_reading_is_whole_in_both_languages(slug):
    reading = lk.read_model(slug)
    made = {language: words.blocks(reading, language) for language in text.LANGUAGES}
    zh, en = made["zh"], made["en"]
    assert [type(block) for block in zh] == [type(block) for block in en]
    for one, other in zip(zh, en, strict=True):
        if isinstance(one, Table):
            assert len(one.rows) == len(other.rows)
            assert all(len(row) == len(one.head) for row in one.rows)
    assert sum(isinstance(block, Heading) for block in en) >= 7
    assert len(reading.misreadings) == 5
    parser = Balanced()
    parser.feed(reading.to_html("zh"))
    assert parser.open == []
    assert parser.rows > 12
    assert markdown(en) == reading.to_markdown("en")


@pytest.mark.parametrize("slug", model_slugs())
def test_every_built_in_model_has_fields_structures_and_a_point(slug):
    reading = lk.read_model(slug)
    assert reading.ledger.fits in ("yes", "no", "uncertain")
    fields = reading.basic_fields("zh")
    assert {f.name for f in fields} >= {
        "total", "active", "layers", "heads", "kv_heads", "attention", "context", "experts",
        "topk", "precision", "engine",
    }  # fmt: skip
    assert all(f.value and f.origin for f in fields)
    assert {s.ledger for s in reading.structures} >= {"attention_kv", "ffn_mlp"}
    for structure in reading.structures:
        assert structure.id in SOURCES
        assert words.structure_text(structure, "zh") != words.structure_text(structure, "en")
    ast.parse(reading.load_test_code)


# other references, and bad ones ----------------------------------------------------------------


def test_a_config_nobody_has_seen(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(TINY), encoding="utf-8")
    by_path, by_folder, by_dict = (lk.read_model(ref) for ref in (path, str(tmp_path), TINY))
    numbers = {r.model.parameter_count for r in (by_path, by_folder, by_dict)}
    assert len(numbers) == 1
    assert repr(str(path)) in by_path.load_test_code
    assert "plan(config," in by_dict.load_test_code
    workload = by_dict.point.workload
    assert workload.prompt_tokens + workload.output_tokens <= 512
    assert field(by_dict, "layers")[0].where == "num_hidden_layers"


def test_a_model_object_has_no_record():
    reading = lk.read_model(lk.load_model("qwen3-8b"))
    (layers,) = field(reading, "layers")
    assert (layers.value, layers.origin) == ("36", "counted")
    assert "Qwen3" in reading.to_markdown("en")


def test_a_stated_point_is_kept():
    reading = lk.read_model(
        "llama-3.1-70b", hardware="a100-sxm-40gb", deployment={"tp": 2},
        workload={"prompt_tokens": 4096, "output_tokens": 64},
    )  # fmt: skip
    assert (reading.point.deployment.tp, reading.point.chosen) == (2, False)
    assert reading.ledger.fits == "no"
    assert "does not fit" in reading.to_markdown("en")
    assert reading.load_test is None
    assert reading.load_test_reason


def test_the_smallest_layout_that_fits_is_chosen():
    assert lk.read_model("llama-3.1-8b").point.deployment.devices == 1
    assert lk.read_model("kimi-k3").point.deployment.devices == 16


def test_what_cannot_be_read_is_refused():
    for ref in ("no-such-model", {"model_type": "llama"}, {}):
        with pytest.raises(LedgerError):
            lk.read_model(ref)
    with pytest.raises(LedgerError):
        lk.read_model("llama-3.1-8b", deployment=lk.Deployment(tp=7))
    with pytest.raises(ValueError, match="unknown language"):
        lk.read_model(TINY).to_markdown("fr")


def test_names_from_a_file_stay_text():
    reading = lk.read_model({**TINY, "_name": "<script>alert(1)</script>"})
    assert "<script>" not in reading.to_html("en")
    made = page([Paragraph("a < b", "c & d"), Table(("x",), (("<i>",),))], "en", "<t>")
    assert "<i>" not in made
    assert "a &lt; b" in made


@pytest.mark.parametrize("name", ["deepseek2", "gemma3", "gpt_oss", "qwen3next", "kimi_linear"])
def test_a_gguf_file_is_read_like_a_config(name, tmp_path):
    path = build.write(tmp_path / f"{name}.gguf", build.PLANS[name]())
    reading = lk.read_model(path)
    (layers,) = field(reading, "layers")
    assert (layers.origin, layers.value) == ("counted", str(reading.model.num_hidden_layers))
    zh, en = (words.blocks(reading, language) for language in text.LANGUAGES)
    assert [type(block) for block in zh] == [type(block) for block in en]
    assert field(reading, "engine")[0].origin == "not_stated"


# as data, and from a shell ---------------------------------------------------------------------


def test_a_reading_is_data(kimi):
    data = json.loads(json.dumps(kimi.to_dict("zh")))
    assert data["model"] == "kimi-k2.6"
    assert data["point"]["deployment"]["tp"] == 8
    assert len(data["costs"]) == kimi.costs.height
    assert data["load_test"]["fingerprint"] == kimi.load_test.fingerprint
    assert {check["id"] for check in data["misreadings"]} == {c.id for c in kimi.misreadings}


def test_the_command_prints_and_writes(tmp_path, capsys):
    config = tmp_path / "config.json"
    config.write_text(json.dumps(TINY), encoding="utf-8")
    assert main(["report", str(config), "--language", "zh"]) == 0
    assert "第三步：省了什么" in capsys.readouterr().out
    for name, start in (("a.html", "<!doctype html>"), ("b.json", "{"), ("c.md", "# ")):
        out = tmp_path / "made" / name
        assert main(["report", str(config), "--tp", "2", "--out", str(out)]) == 0
        assert out.read_text(encoding="utf-8").startswith(start)
    assert json.loads((tmp_path / "made" / "b.json").read_text())["point"]["deployment"]["tp"] == 2
    assert main(["report", "no-such-model"]) == 2
    assert "no built-in model" in capsys.readouterr().err


def test_the_recall_test_can_be_pasted(gemma, kimi, monkeypatch, capsys):
    assert kimi.recall_test_code is None
    asked = []

    def answer(request):
        prompt = json.loads(request.data)["prompt"]
        asked.append(len(prompt))
        # a server that forgets what lies more than 50,000 characters back
        told = prompt[17:24] if len(prompt) < 50_000 else "lost"
        return io.BytesIO(json.dumps({"choices": [{"text": f" {told}."}]}).encode())

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    exec(compile(gemma.recall_test_code, "pasted", "exec"), {})  # noqa: S102
    lines = capsys.readouterr().out.splitlines()
    depths = gemma.misreadings[-1].numbers["depths"]
    assert [int(line.split()[0]) for line in lines] == depths
    assert lines[0].endswith("20 of 20")
    assert lines[-1].endswith("0 of 20")
    assert len(asked) == 20 * len(depths)
