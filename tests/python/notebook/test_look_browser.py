"""The frame of a Look in a real browser, beside what else stands in a notebook."""
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

sys.path.append(str(Path(__file__).parents[2] / "web"))

import attn  # noqa: E402
import look_models  # noqa: E402
from browser import Browser, tap  # noqa: E402

pytestmark = pytest.mark.usefixtures("registered")

OPENED = "return 'open' in (document.querySelector('.attention-map')?.dataset ?? {})"
WORDS = "return [...document.querySelectorAll(arguments[0])].map((label) => label.textContent)"
SUBJECT = "return document.querySelector('.made-subject').textContent"
IS_APART = "try { return !parent.document; } catch (error) { return error.name === 'SecurityError'; }"
TEXT = "it was </script><img src=x onerror=alert(1)> שלום heavy"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        started = Browser()
    except tap.Skip as reason:
        pytest.skip(str(reason))
    with started:
        yield started


def enter(browser: Any, frame: int | None) -> None:
    browser._send("POST", "/frame", {"id": frame})


def test_two_frames_in_one_document(browser: Any, tmp_path: Path) -> None:
    tokenizer = look_models.word_piece()
    model = look_models.bert(len(tokenizer))
    looks = [attn.look(model, tokenizer, text) for text in (TEXT, "the robot was heavy")]
    path = tmp_path / "notebook.html"
    path.write_text("<!DOCTYPE html><meta charset=utf-8><p>" + "".join(look._repr_html_() for look in looks))
    browser.open(path.as_uri())
    for place, look in enumerate(looks):
        enter(browser, place)
        browser.wait_for(OPENED)
        assert browser.execute(WORDS, ".queries bdi") == browser.execute(WORDS, ".keys bdi") == look.words
        assert browser.execute(IS_APART) is True
        # A head and a word are chosen, and the page tells how its weights are made.
        browser.click(browser.find("[role=tab][data-view=model]"))
        browser.click(browser.find('[role=gridcell][aria-label^="layer 1 head 2"]'))
        browser.click(browser.find('.queries [data-row="2"]'))
        assert browser.execute(SUBJECT) == f"{look.words[1]} in layer 1 head 2"
        enter(browser, None)
    assert browser.console() == []
    assert browser.requests() == [path.as_uri()]
