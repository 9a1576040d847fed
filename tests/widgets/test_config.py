"""ConfigDrop without a browser: text in, reading out, and words for what cannot be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import ledgerkit as lk
from ledgerkit.widgets import ConfigDrop
from tests.widgets.helpers import assert_code_recreates, open_widgets, until, uploaded

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIG = {
    "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4, "vocab_size": 32000,
    "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 4096,
    "max_position_embeddings": 131072, "tie_word_embeddings": False, "head_dim": 64,
    "architectures": ["LlamaForCausalLM"], "torch_dtype": "bfloat16", "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
}  # fmt: skip


@pytest.fixture
def drop() -> Iterator[ConfigDrop]:
    made = ConfigDrop(language="en")
    yield made
    made.close()


def test_it_starts_empty_and_says_what_to_do(drop):
    assert drop.chart is None
    assert drop.error == ""
    assert "Paste or upload" in drop._about.value
    assert not drop._toolbar.drawn
    with pytest.raises(lk.errors.LedgerError, match="no figure"):
        drop.save("x.svg")


def test_pasted_text_is_read(drop):
    drop._paste.value = json.dumps(CONFIG)
    until(lambda: drop.model is not None and drop._fields.value)
    # 4 layers: q, k, v, o, three FFN matrices, two norms; final norm; embedding and head
    layer = 1024 * (1024 + 2 * 256 + 1024) + 3 * 1024 * 4096 + 2 * 1024
    assert drop.model.parameter_count == 4 * layer + 1024 + 2 * 32000 * 1024
    assert "hidden_size" in drop._fields.value
    until(lambda: drop._steps.value)
    assert "<h2>" in drop._steps.value
    assert "<body>" not in drop._steps.value


def test_an_upload_is_read(drop):
    upload = drop._side.children[2]
    upload.value = (uploaded("config.json", json.dumps(CONFIG)),)
    until(lambda: drop.model is not None and drop.code)
    assert json.loads(drop.config) == CONFIG


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("reference", ["", "gemma-4-26b-a4b"])
def test_the_copied_code_draws_the_same_figure(drop, language, reference):
    drop.config = json.dumps(CONFIG)
    drop.language, drop.reference, drop.theme = language, reference, "dark"
    assert_code_recreates(drop)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("{", "not JSON"),
        ("[1]", "is an object, this is list"),
        ('{"model_type": "zork"}', "no reader knows this model_type"),
        (json.dumps({**CONFIG, "num_flux_heads": 3}), "num_flux_heads"),
        (json.dumps({k: v for k, v in CONFIG.items() if k != "hidden_size"}), "hidden_size"),
    ],
)
def test_what_cannot_be_read_is_said_and_the_last_reading_stays(drop, config, words):
    drop.config = json.dumps(CONFIG)
    before = drop.model
    drop.config = config
    assert words in drop.error
    assert drop.model is before
    assert drop._figure.spec


@pytest.mark.usefixtures("drop")
def test_closing_leaves_nothing_behind():
    before = open_widgets()
    made = ConfigDrop(CONFIG)
    made.language = "zh"
    made.close()
    assert open_widgets() == before
