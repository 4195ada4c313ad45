"""The strip "How it is made" and the numbers in it: made_test.py ATTN DRAW_MAP PICTURES.

What it shows is computed anew here, in double, from the vectors that the page carries; and what comes out
must be the weights that the page carries beside them, which the model made itself.
"""
import base64
import json
import math
import os
import re
import struct
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

from browser import tap  # noqa: E402
from pages import SENTENCE, Pages, long_text  # noqa: E402
from reader import Reader, run  # noqa: E402

PAGES = Pages(sys.argv[1], sys.argv[2])
READER = Reader()
WORDS = "the quick brown fox jumps over a lazy dog and then it sleeps".split()
STEPS = ["Query", "Key", "Score", "Scale", "Softmax", "Weighted value"]
SHOWN = 8
NUMBER = r"−?\d+\.\d+"


def data_of(address):
    text = PAGES.path(address).read_text(encoding="utf-8")
    return json.loads(re.search(r'class="attention-map-data">(.*?)</script>', text, re.DOTALL)[1])


def row_of(address, word):
    return data_of(address)["rows"].index(word)


class Head:
    """One head of a page's vectors, in double."""

    def __init__(self, data, layer, head):
        self.vectors = vectors = data["vectors"]
        self.queries = self.matrix("queries", layer * vectors["heads"] + head)
        key_head = head // (vectors["heads"] // vectors["keyHeads"])
        self.keys, self.values = (self.matrix(kind, layer * vectors["keyHeads"] + key_head) for kind in ("keys", "values"))

    def matrix(self, kind, place):
        given, tokens, d = self.vectors[kind], len(self.vectors["tokens"]), self.vectors["d"]
        codes = base64.b64decode(given["codes"])
        numbers = struct.unpack_from(f"<{tokens * d}h", codes, 2 * place * tokens * d)
        return [[code / 32767 * given["largest"] for code in numbers[i * d : (i + 1) * d]] for i in range(tokens)]

    def scores(self, token):
        last = token + 1 if self.vectors["causal"] else len(self.keys)
        return [math.fsum(map(lambda a, b: a * b, self.queries[token], key)) for key in self.keys[:last]]

    def weights(self, token):
        scaled = [score * self.vectors["scale"] for score in self.scores(token)]
        parts = [math.exp(score - max(scaled)) for score in scaled]
        return [part / math.fsum(parts) for part in parts]

    def output(self, token):
        weights = self.weights(token)
        return [math.fsum(weight * value[i] for weight, value in zip(weights, self.values)) for i in range(self.vectors["d"])]


def page_weights(data, panel):
    """[rows][columns], which the page must hold whole."""
    assert data["strongest"] == 0
    rows, columns = len(data["rows"]), len(data["columns"] or data["rows"])
    codes = struct.unpack_from(f"<{rows * columns}H", base64.b64decode(data["weights"]), 2 * panel * rows * columns)
    return [[code / 65534 * data["largest"] for code in codes[row * columns : (row + 1) * columns]] for row in range(rows)]


def worst_error(data):
    """Between the page's weights and what its vectors come to, over all heads."""
    vectors, worst = data["vectors"], 0
    words = list(zip(vectors["rowTokens"], vectors["rowTokenCounts"]))
    for i, panel in enumerate(data["panels"]):
        if min(panel["layer"], panel["head"]) < 0:
            continue
        head, own = Head(data, panel["layer"], panel["head"]), page_weights(data, i)
        for row, (first, count) in enumerate(words):
            pieces = [head.weights(token) for token in range(first, first + count)]
            for column, (begin, length) in enumerate(words):
                made = sum(sum(piece[begin : begin + length]) for piece in pieces) / count
                error = abs(own[row][column] - made)
                worst = error if not error <= worst else worst
    return worst


def vectors_of_an_encoder_give_its_weights():
    error = worst_error(data_of(PAGES.of_text()))
    print(f"# largest error: {error:.2e}", flush=True)
    assert error <= 1e-3


def vectors_of_a_generator_give_its_weights():
    model = os.environ.get("ATTN_TEST_GENERATOR")
    if not model:
        raise tap.Skip("ATTN_TEST_GENERATOR names no model")
    error = worst_error(data_of(PAGES.of_text(SENTENCE, model=model)))
    print(f"# largest error: {error:.2e}", flush=True)
    assert error <= 1e-2


def go(step):
    READER.browser.click(READER.find(f".made-steps li:nth-child({step + 1}) button"))
    assert READER.texts(".made-steps [aria-current=step]") == [f"{step + 1} {STEPS[step]}"]


def numbers(text):
    return [float(number.replace("−", "-")) for number in re.findall(NUMBER, text)]


def close(found, expected, digits=2):
    tolerance = 0.5 * 10**-digits + 1e-6
    assert len(found) == len(expected), (found, expected)
    assert all(abs(a - b) <= tolerance for a, b in zip(found, expected)), (found, expected)


def column(step):
    """The numbers of the keys in the table's column that a step adds."""
    cells = READER.texts(f"tbody tr td[data-from='{step}']:not([hidden])")
    return [numbers(cell) for cell in cells if cell]


def each_step_shows_the_numbers_of_the_word():
    address = PAGES.of_vectors(WORDS)
    head, token = Head(data_of(address), 1, 2), 11
    READER.show(address, f"#heads=L1H2&word=q{token}")
    assert "it in layer 1 head 2" in READER.text(".made")
    weights, scores = head.weights(token), head.scores(token)
    order = sorted(range(token + 1), key=lambda key: (-weights[key], key))[:SHOWN]
    key = order[0] if order[0] != token else order[1]
    scale = head.vectors["scale"]

    close(numbers(READER.text(".made-formula")), head.queries[token][:4])
    go(1)
    assert READER.texts(".made-keys label bdi") == [WORDS[place] for place in order]
    close(numbers(READER.text(".made-formula")), head.keys[key][:4])
    go(2)
    terms = [number for pair in zip(head.queries[token][:3], head.keys[key][:3]) for number in pair]
    close(numbers(READER.text(".made-formula")), [*terms, scores[key]])
    assert [len(cell) for cell in column(2)] == [1] * SHOWN
    close([cell[0] for cell in column(2)], [scores[place] for place in order])
    go(3)
    close(numbers(READER.text(".made-formula"))[-1:], [scores[key] * scale])
    assert f"1/√{head.vectors['d']}" in READER.text(".made-formula")
    go(4)
    close(numbers(READER.text(".made-formula"))[-1:], [weights[key]], digits=3)
    shown = [cell[0] for cell in column(4)]
    close(shown, [*(weights[place] for place in order), 1 - sum(weights[place] for place in order)], digits=4)
    assert READER.texts(".made-keys tbody th")[-2] == f"{token + 1 - SHOWN} other keys"
    go(5)
    close(numbers(READER.text(".made-formula"))[-4:], head.output(token)[:4])
    assert READER.browser.console() == []


def the_weight_is_the_page_s():
    for address, fragments in (
        (PAGES.of_vectors(WORDS), ["heads=L0H1&word=q12", "heads=L1H3&word=q5", "heads=L1H0&word=q0"]),
        (PAGES.of_text(), ["heads=L5H0&word=q7", "heads=L2H3&word=q5", "heads=L0H11&word=q1"]),
    ):
        for fragment in fragments:
            READER.show(address, "#" + fragment)
            go(4)
            own, made = numbers(READER.text(".made-check"))
            assert abs(own - made) <= 0.0003, (fragment, own, made)
            assert 0 < own <= 1


def another_key_is_followed():
    READER.show(PAGES.of_vectors(WORDS), "#heads=L1H2&word=q9")
    go(1)
    before = READER.text(".made-formula")
    names = READER.texts(".made-keys label bdi")
    READER.browser.click(READER.find("tbody tr:nth-child(5) input"))
    assert READER.text(".made-formula").startswith(f"k({names[3]})") and READER.text(".made-formula") != before
    go(4)
    assert f"to {names[3]}:" in READER.text(".made-check")
    READER.browser.execute("arguments[0].focus()", READER.find(".made-keys input:checked"))
    READER.browser.press("ArrowDown")
    assert f"to {names[4]}:" in READER.text(".made-check")


def keys_and_buttons_walk_the_steps():
    READER.show(PAGES.of_vectors(WORDS), "#heads=L1H2&word=q9")
    browser = READER.browser
    current = ".made-steps [aria-current=step]"
    browser.execute("arguments[0].focus()", READER.find(current))
    for keys, step in ((["ArrowRight"], 1), (["ArrowRight", "ArrowRight"], 3), (["ArrowLeft"], 2), (["End"], 5), (["ArrowRight"], 5),
                       (["Home"], 0)):  # fmt: skip
        browser.press(*keys)
        assert READER.texts(current) == [browser.text(browser.active())] == [f"{step + 1} {STEPS[step]}"]
    for _ in range(7):
        browser.click(READER.find(".made-next"))
    assert READER.text(current) == "6 Weighted value"
    assert browser.attribute(READER.find(".made-next"), "aria-disabled") == "true"
    browser.click(READER.find(".made-previous"))
    assert READER.text(current) == "5 Softmax"
    assert browser.execute('return document.querySelector(".made-formula").closest("[aria-live=polite]") !== null')


def one_number_is_spelled_out():
    address = PAGES.of_vectors(WORDS)
    head = Head(data_of(address), 1, 2)
    READER.show(address, "#heads=L1H2&word=q9")
    go(2)
    browser = READER.browser
    slider = READER.find(".made-place input")
    browser.execute("arguments[0].focus()", slider)
    browser.press("ArrowRight", "ArrowRight")
    assert READER.text(".made-number").startswith(f"3: query {head.queries[9][2]:.2f}".replace("-", "−"))
    assert browser.attribute(slider, "aria-valuetext") == READER.text(".made-number")
    strip = READER.find(".made-keys canvas")
    width = browser.execute("return arguments[0].clientWidth", strip)
    browser.hover(strip, x=width // 2 - 2)
    assert READER.text(".made-number").startswith(f"8: query {head.queries[9][7]:.2f}".replace("-", "−"))
    name = browser.name(strip)
    assert name.startswith("query of and, 8 numbers: ") and name.endswith("and so on")


def a_word_of_several_pieces_lets_one_choose():
    address = PAGES.of_text("It was an unscrewdriverable thing.")
    READER.show(address, f"#heads=L3H2&word=q{row_of(address, 'unscrewdriverable')}")
    pieces = READER.texts(".made-subject option")
    assert len(pieces) > 1 and READER.text(".made-subject").startswith(pieces[0])
    go(4)
    check, formula = READER.text(".made-check"), READER.text(".made-formula")
    own, made = numbers(check)
    assert abs(own - made) <= 0.0003
    READER.browser.execute("arguments[0].focus()", READER.find(".made-subject select"))
    READER.browser.press("ArrowDown")
    assert READER.text(".made-subject").startswith(pieces[1]) and READER.text(".made-formula") != formula


def strips_of_two_maps_are_apart():
    one, other = PAGES.of_vectors(WORDS), PAGES.of_vectors(WORDS[:5])
    READER.show(PAGES.joined(one, other), "#heads=L1H2&word=q9&2.heads=L0H1&2.word=q4")
    checked = 'return [...document.querySelectorAll(".made")].map((strip) => strip.querySelectorAll("input:checked").length)'
    assert READER.browser.execute(checked) == [1, 1]
    READER.browser.click(READER.find(".made-steps li:nth-child(2) button"))
    assert READER.texts(".made-steps [aria-current=step]") == ["2 Key", "1 Query"]
    READER.browser.click(READER.find(".made-keys tbody tr:nth-child(4) input"))
    assert READER.browser.execute(checked) == [1, 1]


def numbers_that_are_none_are_said():
    vectors = {"layers": 1, "heads": 1, "key_heads": 1, "d": 2, "tokens": 2, "scale": 1, "causal": False,
               "queries": [None, 1, 1, 1], "keys": [1, 2, 3, 4], "values": [1, 1, 1, 1]}  # fmt: skip
    READER.show(PAGES.of_map(["a", "b"], heads=1, vectors=vectors), "#word=q0")
    for step in range(6):
        go(step)
    assert "not a number" in READER.text(".made-keys") and READER.browser.console() == []


def another_measure_is_told_from_the_weight():
    READER.show(PAGES.of_text(SENTENCE, "--measure", "norm"), "#heads=L5H0&word=q7")
    go(4)
    assert "another measure: norm" in READER.text(".made-check")
    assert "norm of what the key adds, as a share of the row" in READER.text(".legend-title")
    READER.show(PAGES.of_text(SENTENCE, "--measure", "rollout"), "#word=q7")  # without heads
    assert not READER.browser.execute('return document.querySelector(".made").checkVisibility()')


def the_focus_goes_back_to_the_word():
    """What had it goes away with the lock."""
    browser = READER.browser
    for view, role in (("head", "option"), ("matrix", None), ("model", "gridcell")):
        READER.show(PAGES.of_vectors(WORDS), f"#heads=L0H0&word=q3&view={view}")
        browser.execute('document.querySelector(".made-steps button[aria-current]").focus()')
        browser.press("ArrowRight", "Escape")
        assert "word" not in READER.fragment()
        focus = 'return document.querySelector(`.view[data-view=${arguments[0]}]`).contains(document.activeElement)'
        assert browser.execute(focus, view), view
        assert role in (None, browser.role(browser.active())), view
    READER.show(PAGES.of_vectors(WORDS), "#heads=L0H0&word=q3")
    browser.execute('document.querySelector(".ranking button").focus()')
    browser.press("Escape")
    assert browser.execute("return document.activeElement.dataset.row") == "3"
    assert browser.console() == []


def what_cannot_be_walked_through_is_said():
    hint = ".made-hint"
    address = PAGES.of_vectors(WORDS)
    READER.show(address)
    assert "Choose one head" in READER.text(hint)
    READER.show(address, "#heads=L0H0.L0H1&word=q3")
    assert "Choose one head" in READER.text(hint)
    assert not READER.browser.execute('return document.querySelector(".made-body").checkVisibility()')
    READER.show(PAGES.of_vectors(long_text(300).split(), layers=6, heads=12, key_heads=12, d=64), "#word=q3")
    assert "too long" in READER.text(hint)
    READER.show(PAGES.of_map(WORDS), "#word=q3")
    assert not READER.browser.execute('return document.querySelector(".made").checkVisibility()')
    assert READER.browser.console() == []


run(
    READER,
    [
        vectors_of_an_encoder_give_its_weights,
        vectors_of_a_generator_give_its_weights,
        each_step_shows_the_numbers_of_the_word,
        the_weight_is_the_page_s,
        another_key_is_followed,
        keys_and_buttons_walk_the_steps,
        one_number_is_spelled_out,
        a_word_of_several_pieces_lets_one_choose,
        strips_of_two_maps_are_apart,
        numbers_that_are_none_are_said,
        another_measure_is_told_from_the_weight,
        the_focus_goes_back_to_the_word,
        what_cannot_be_walked_through_is_said,
    ],
)
