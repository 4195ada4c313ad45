"""The page of attn.look beside the one that the tool writes of the same model and text.

ATTN_TOOL names the tool (build/attn), ATTN_TEST_MODEL the folder of the default encoder.
"""
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import transformers  # noqa: E402

import attn  # noqa: E402
from page_reader import data_of, frame_of, links_of, vectors_of  # noqa: E402

pytestmark = pytest.mark.usefixtures("registered")

SMALL_MODEL = Path(__file__).parents[2] / "data/models/masked_words"
SENTENCE = "The robot picked up the screwdriver because it was heavy."
HOSTILE = "a<b</script> \"q\" 'r' &amp; \u202eabc\tשלום e\u0301 你好 👨\u200d👩\u200d👧 [MASK] screwdrivers"
WEIGHT_ERROR = 2e-5  # a code is 1/65534, and two implementations round


def some_words(count: int) -> str:
    some = "the cat we saw near a house ran over old stones and then it slept while rain fell on green hills".split()
    return " ".join(some[(i * i + 3 * i) % len(some)] for i in range(count))


def pages_of(folder: Path, text: str, pair: str | None, target: Path) -> tuple[str, str]:
    """The tool's, and that of attn.look."""
    tool = os.environ.get("ATTN_TOOL")
    if not tool:
        pytest.skip("ATTN_TOOL names no tool")
    options = ["--pair", pair] if pair else []
    subprocess.run([tool, "look", "-m", folder, "-o", target, *options, text], check=True)
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="attn")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return target.read_text(encoding="utf-8"), attn.look(model, tokenizer, text, pair=pair).page


def assert_same_links(data: dict[str, Any], wanted: dict[str, Any]) -> None:
    for panel, wanted_panel in zip(links_of(data), links_of(wanted), strict=True):
        for row, wanted_row in zip(panel, wanted_panel, strict=True):
            # Where links hold 70 % almost to the bit, and of equal links, rounding chooses.
            assert abs(len(row) - len(wanted_row)) <= 1
            for (column, weight), (wanted_column, wanted_weight) in zip(row, wanted_row):
                assert abs(weight - wanted_weight) <= WEIGHT_ERROR
                assert column == wanted_column or abs(dict(row).get(wanted_column, weight) - weight) <= WEIGHT_ERROR


def assert_same(page: str, wanted_page: str) -> None:
    assert frame_of(page) == frame_of(wanted_page)
    data, wanted = data_of(page), data_of(wanted_page)
    assert list(data) == list(wanted)
    for name in data.keys() - {"weights", "vectors", "largest", "share"}:
        assert data[name] == wanted[name], name
    for name in ("largest", "share"):
        assert abs(data[name] - wanted[name]) <= WEIGHT_ERROR, name
    assert_same_links(data, wanted)
    vectors, wanted_vectors = data["vectors"], wanted["vectors"]
    assert (vectors is None) == (wanted_vectors is None)
    for name in vectors or ():
        if name not in ("queries", "keys", "values"):
            assert vectors[name] == wanted_vectors[name], name
            continue
        error = max(abs(a - b) for a, b in zip(vectors_of(data, name), vectors_of(wanted, name), strict=True))
        assert error <= 2e-4 * wanted_vectors[name]["largest"], name


@pytest.mark.parametrize(("text", "pair"), [(HOSTILE, None), ("The robot was heavy.", "It saw screwdrivers?")],
                         ids=["hostile", "pair"])
def test_a_small_model(text: str, pair: str | None, tmp_path: Path) -> None:
    wanted, page = pages_of(SMALL_MODEL, text, pair, tmp_path / "page.html")
    assert_same(page, wanted)


@pytest.mark.parametrize("text", [SENTENCE, some_words(125)], ids=["all weights", "strongest links"])
def test_the_default_encoder(text: str, tmp_path: Path) -> None:
    folder = os.environ.get("ATTN_TEST_MODEL")
    if not folder:
        pytest.skip("ATTN_TEST_MODEL names no model")
    wanted, page = pages_of(Path(folder), text, None, tmp_path / "page.html")
    assert_same(page, wanted)
