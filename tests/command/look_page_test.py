"""attn look -o page.html: what of the attention comes to the page, for short and long texts."""
import array
import base64
import json
import re

import tiny_gpt2
from tool import FOLDER, SENTENCE, attn, fails, file, model, succeeds, tap

WORDS = SENTENCE[:-1].split() + ["."]
PAGE_LIMIT = 3_000_000


def page_of(path):
    text = path.read_text()
    assert len(text.encode()) < PAGE_LIMIT
    return json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)[1])


def page(*arguments, name="page.html"):
    path = FOLDER / name
    assert succeeds("look", "-m", str(model()), SENTENCE, *arguments, "-o", str(path)) == ""
    return page_of(path)


def weights_of(content):
    """[panel][row][column] of a page that holds all weights."""
    assert content["strongest"] == 0
    codes = array.array("H", base64.b64decode(content["weights"]))
    size = len(content["rows"])
    return [[[codes[(panel * size + row) * size + column] / 65534 * content["largest"] for column in range(size)]
             for row in range(size)] for panel in range(len(content["panels"]))]


def places(content):
    return [(panel["layer"], panel["head"]) for panel in content["panels"]]


def has_all_heads_and_means():
    content = page()
    assert content["rows"] == ["[CLS]", *WORDS, "[SEP]"] and content["text"] == SENTENCE and not content["renormalized"]
    heads = [(layer, head) for layer in range(6) for head in range(12)]
    assert places(content) == [(-1, -1)] + [(layer, -1) for layer in range(6)] + heads
    matrices = weights_of(content)
    chosen = [(-1, -1), (5, -1), (4, 7)]
    for place, arguments in zip(chosen, [[], ["--layer", "5"], ["--head", "L4H7"]]):
        told = json.loads(succeeds("look", "-m", str(model()), SENTENCE, "--special", "--json", *arguments))["heads"][0]
        for a, b in zip(matrices[places(content).index(place)], told["weights"], strict=True):
            assert all(abs(x - y) <= 1e-4 for x, y in zip(a, b, strict=True)), place


def has_what_is_asked_for():
    assert places(page("--head", "L4H7", "--head", "L0H0")) == [(4, 7), (0, 0)]
    assert places(page("--layer", "3")) == [(3, -1)]
    assert places(page("--measure", "rollout")) == [(-1, -1)] + [(layer, -1) for layer in range(6)]
    for row in weights_of(page("--renormalize", "--layer", "3"))[0]:
        assert abs(sum(row) - 1) <= 1e-3


def json_beside_a_page_is_of_the_mean():
    path = FOLDER / "beside.html"
    printed = succeeds("look", "-m", str(model()), SENTENCE, "--json", "-o", str(path))
    assert printed == succeeds("look", "-m", str(model()), SENTENCE, "--json")
    assert len(page_of(path)["panels"]) == 79


def keeps_and_marks_added_tokens():
    content = page()
    assert content["rows"][0] == "[CLS]" and content["rowSpecial"] == [0, len(WORDS) + 1]
    assert page("--special") == content
    assert page("--renormalize")["rowSpecial"] == []


def has_the_numbers_that_weights_are_made_of():
    content = page("--special", "--pieces", "--head", "L2H3")
    vectors, size = content["vectors"], len(content["rows"])
    assert vectors["tokens"] == ["[CLS]", *WORDS[:5], "screw", "drive", "r", *WORDS[6:], "[SEP]"]
    assert content["rows"][5:9] == ["the", "screw", "##drive", "##r"]
    assert vectors["rowTokens"] == list(range(size)) and vectors["rowTokenCounts"] == [1] * size
    words = page("--special")["vectors"]
    assert words["tokens"] == vectors["tokens"]
    assert words["rowTokens"] == [0, 1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14]
    assert words["rowTokenCounts"] == [1, 1, 1, 1, 1, 1, 3, 1, 1, 1, 1, 1, 1]


def a_whole_context_fits():
    text = file("words.txt", " ".join(WORDS * 39))
    path = FOLDER / "long.html"
    succeeds("look", "-m", str(model()), "-f", text, "-o", str(path))
    content = page_of(path)
    assert len(content["rows"]) == 431 and len(content["panels"]) == 79


def a_long_text_has_the_means_of_layers():
    tiny_gpt2.LAYERS, tiny_gpt2.HEADS, tiny_gpt2.POSITIONS = 12, 16, 2048
    text = file("long.txt", "the " * 1800)
    path = FOLDER / "chapter.html"
    look = ["look", "-m", tiny_gpt2.gpt2("deep"), "-f", text, "-o", str(path)]
    result = attn(*look)
    assert result.status == 0 and result.out == "", result.err
    assert re.fullmatch(r"attn look: a page cannot hold 180\d words of every head: it has the means of layers; "
                        r"--head chooses heads\n", result.err), result.err
    content = page_of(path)
    assert places(content) == [(-1, -1)] + [(layer, -1) for layer in range(12)]
    assert 0 < content["share"] < 1 and content["strongest"] > 0
    succeeds(*look, "--head", "L11H15")
    assert places(page_of(path)) == [(11, 15)]
    every = [part for layer in range(12) for head in range(16) for part in ["--head", f"L{layer}H{head}"]]
    fails(1, ["384 matrices", "fewer with --head"], *look, *every, *every)


tap.run([
    has_all_heads_and_means,
    has_what_is_asked_for,
    json_beside_a_page_is_of_the_mean,
    keeps_and_marks_added_tokens,
    has_the_numbers_that_weights_are_made_of,
    a_whole_context_fits,
    a_long_text_has_the_means_of_layers,
])
