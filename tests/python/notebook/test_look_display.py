"""A Look as notebooks show it."""
import html
import re

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import attn  # noqa: E402
import look_models  # noqa: E402

pytestmark = pytest.mark.usefixtures("registered")

FRAME = re.compile(
    r'(?s)<iframe title="Attention" sandbox="allow-scripts" srcdoc="([^"<>]*)" style="[^"<>]*"></iframe>')
# Without PyTorch, which takes longer to load than all the rest.
CELL = """
import numpy
from attn.notebook import Look
from attn.page.data import PageMap
weights = numpy.full((1, 1, 2, 2), 0.5, numpy.float32)
page = PageMap("a model", "it was", None, ["it", "was"], [False, False], [(0, 0)], weights[0], None, False)
Look(page, weights, False)
"""


def make_look(text: str) -> attn.notebook.Look:
    tokenizer = look_models.word_piece()
    return attn.look(look_models.bert(len(tokenizer)), tokenizer, text)


def test_the_frame_holds_the_page_and_nothing_gets_out() -> None:
    look = make_look("it was \"'></iframe></script> & heavy")
    found = FRAME.fullmatch(look._repr_html_())
    assert found and html.unescape(found[1]) == look.page


def test_ipython_shows_the_frame() -> None:
    pytest.importorskip("IPython")
    from IPython.core.formatters import DisplayFormatter

    look = make_look("it was heavy")
    shown, _ = DisplayFormatter().format(look)
    assert shown["text/html"] == look._repr_html_() and shown["text/plain"] == repr(look)


def test_a_notebook_runs() -> None:
    for module in ("nbformat", "nbclient", "ipykernel"):
        pytest.importorskip(module)
    import nbclient
    import nbformat

    cell = nbformat.v4.new_code_cell(CELL)
    notebook = nbformat.v4.new_notebook(cells=[cell])
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    results = [output for output in cell.outputs if output.output_type == "execute_result"]
    assert len(results) == 1, cell.outputs
    data = results[0].data
    assert FRAME.fullmatch(data["text/html"]) and data["text/plain"].startswith("<attn.Look at 2 words:")
