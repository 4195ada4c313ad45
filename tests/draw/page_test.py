"""Pages as their readers see them: page_test.py DRAW_MAP."""
import concurrent.futures
import json
import math
import pathlib
import random
import re
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import tap
from drawn import (CASE, HARD_LABELS, INVISIBLE, PAGE_LIMIT, Page, codes, draw, given_tokens, label_cases, links,
                   refusal, request, run, weight)

HELD = 0.7
FLOAT = struct.Struct("f")
VECTORS = {"layers": 1, "heads": 2, "key_heads": 1, "d": 3, "tokens": 2, "scale": 0.5, "causal": True}


def page_of(asked):
    return Page(draw("html", asked))


def data_of(asked, budget=None):
    return json.loads(draw("data" if budget is None else f"data {budget}", asked))


def panel(rows, layer=0, head=0):
    return {"layer": layer, "head": head, "weights": [weight for row in rows for weight in row]}


def handed_labels():
    for case in label_cases():
        tokens = given_tokens(case)
        page = page_of(request(tokens))
        rows, columns = page.labels()
        if "shown" in case["expected"]:
            assert rows == columns == [case["expected"]["shown"]], case["name"]
        assert all(label.strip() for label in rows)
        assert len(set(rows)) == len(tokens)
        for text in case["expected"].get("never_in_script", []):
            assert all(text not in script for script in page.scripts)
        for text in case["expected"].get("never_in_markup", []):
            assert text not in page.source


def handed_causal_map():
    case = CASE["causal_map_of_three"]
    tokens, weights = case["input"]["tokens"], case["input"]["weights"]["data"]
    data = page_of(request(tokens, panels=[{"layer": 0, "head": 0, "weights": weights}])).data
    assert data["rows"] == tokens and data["columns"] is None and data["strongest"] == 0
    found = [weight(data, code) for code in codes(data["weights"])]
    assert all(abs(a - b) < 1e-5 for a, b in zip(found, weights)) and len(found) == 9
    assert found[0::3] != found[0:3] == [1, 0, 0], "rows are queries, and the upper right corner is empty"


def handed_generated_rows():
    expected = CASE["three_new_tokens_after_four"]["expected"]
    page = page_of(request(expected["row_labels"], expected["column_labels"]))
    assert page.labels() == (expected["row_labels"], expected["column_labels"])
    assert len(codes(page.data["weights"])) == 21


def handed_two_maps_on_one_page():
    pages = [page_of(request(["a", "b"])), page_of(request(["b", "c"]))]
    ids = pages[0].ids + pages[1].ids
    assert len(ids) == len(set(ids))
    for page in pages:
        for text in CASE["two_maps_on_one_page"]["expected"]["page_never_contains"]:
            assert text not in page.source


def handed_page_of_512_tokens():
    given = CASE["page_of_512_tokens"]
    tokens = [f"token{i}" for i in range(given["input"]["tokens"])]
    # Every fifth panel has weights of its own.
    panels = [{"layer": layer, "head": head, "same_as": (13 * layer + head + 2) // 5 * 5}
              for layer in range(12) for head in range(-1, 12)]
    asked = {**request(tokens, panels=[{"layer": -1, "head": -1}] + panels)}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        flat, peaked = pool.map(lambda sharpness: draw("html", {**asked, "sharpness": sharpness}), (0, 200))
    for source in (flat, peaked):
        assert len(source) < given["expected"]["page_bytes_below"]
        data = Page(source).data
        assert data["strongest"] >= 6 and len(links(data)) == 157 * 512
        if source is peaked:
            assert HELD <= data["share"] < 1
        else:
            longer = len(source) + 157 * 512 * 4 * 4 / 3
            assert longer > PAGE_LIMIT - 1000, "another link a row would have fitted"


def hard_labels_stand_in_every_place():
    for labels in [HARD_LABELS] + [[label] for label in HARD_LABELS]:
        text = "".join(label for label in labels if isinstance(label, str))
        vectors = {**VECTORS, "tokens": len(labels)}
        asked = {**request(labels, text=text, pair=text), "model": text or "m", "vectors": vectors}
        page = page_of(asked)
        rows, columns = page.labels()
        assert rows == columns == page.data["vectors"]["tokens"]
        assert len(set(rows)) == len(labels) and all(label.strip() for label in rows)
        assert page.data["text"] == page.data["pair"]
        assert len(page.scripts) == 2 and not INVISIBLE.search(page.source)
        assert page.title == "Attention" + (f" in {page.data['model']}" if asked["model"] else "")


def a_page_asks_the_network_for_nothing():
    for kind, more in (("html", []), ("form", ["connect-src 'self'"])):
        page = Page(draw(kind, request(["a"])))
        for tag, named in page.elements:
            assert not {"src", "href", "srcset", "action"} & set(named), (tag, named)
        assert kind == "form" or not re.search(r"fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import\b", page.scripts[1])
        policy, = page.policy()
        assert policy.split("; ") == ["default-src 'none'", "script-src 'unsafe-inline'", "style-src 'unsafe-inline'",
                                      "img-src data:", "base-uri 'none'", "form-action 'none'"] + more
        tags = [tag for tag, named in page.elements]
        place = page.elements.index(("meta", {"http-equiv": "Content-Security-Policy", "content": policy}))
        assert place < tags.index("style") < tags.index("script")


def the_form_is_the_page_without_data():
    page, form = page_of(request(["a"])), Page(draw("form", {**request(["a"]), "model": "<model>"}))
    def root(found):
        return next(named for _, named in found.elements if "attention-map" in named.get("class", "").split())
    assert form.data is None and form.title == "Attention in <model>" and "<model>" not in form.source
    begin = '\n(() => {\n"use strict";\n'
    assert page.scripts[1].startswith(begin) and form.scripts[1].startswith(begin)
    assert form.scripts[1].endswith(page.scripts[1].removeprefix(begin))
    assert "fetch(" in form.source
    assert "data-ask" in root(form) and "data-ask" not in root(page)


def data_alone_are_the_page_s():
    asked = {**request(["a", "b"], text=None), "vectors": VECTORS}
    assert data_of(asked) == page_of(asked).data


def the_data_say_what_the_map_is():
    panels = [{"layer": -1, "head": -1}, {"layer": 4, "head": -1}, {"layer": 4, "head": 7}]
    asked = {**request(["a", "b"], ["a", "c", "b"], panels, text="a\0b\nc", pair="d"), "renormalized": True,
             "measure": "norm of what the key adds", "row_special": [1], "column_special": [0, 2]}
    data = data_of(asked)
    assert data["model"] == "model" and data["text"] == "a␀b↵c" and data["pair"] == "d"
    assert data["measure"] == "norm of what the key adds" and data["renormalized"] is True
    assert data["rows"] == ["a", "b"] and data["columns"] == ["a", "c", "b"]
    assert data["rowSpecial"] == [1] and data["columnSpecial"] == [0, 2]
    assert data["panels"] == panels
    assert len(data["light"]) == len(data["dark"]) == 257 * 6 and int(data["light"], 16)
    assert data["vectors"] is None and data["vectorsLeftOut"] is False
    plain = data_of({**request(["a"], text=None), "model": None})
    assert (plain["model"], plain["text"], plain["pair"], plain["columns"]) == ("", None, None, None)
    assert plain["measure"] is None and plain["renormalized"] is False
    assert plain["rowSpecial"] == plain["columnSpecial"] == []


def wanted_of(row, links_alone):
    """The links that hold 70 % of a row, in order: the columns, with what is not a number first."""
    order = sorted((j for j, value in enumerate(row) if value is None or value > 0),
                   key=lambda j: (row[j] is not None, -(row[j] or 0), j))
    mass = sum(row[j] or 0 for j in order)
    if links_alone:
        mass = max(mass, 1)
    wanted, held = [], 0
    for j in order:
        if len(wanted) == 255 or (row[j] is not None and held >= HELD * mass):
            break
        wanted.append(j)
        held += row[j] or 0
    return wanted, mass


def as_float(value):
    """The float nearest to it, so that both sides compare and add the same numbers."""
    return None if value is None else FLOAT.unpack(FLOAT.pack(value))[0]


def check_data(asked, matrices, budget, links_alone=False):
    """What a page of the budget must hold of matrices[panel][row][column], and no less."""
    done = run(f"data {budget}", asked)
    wanted = [wanted_of(row, links_alone) for matrix in matrices for row in matrix]
    size = lambda most: -(-sum(1 + 4 * min(most, len(one)) for one, _ in wanted) // 3) * 4
    if done.returncode:
        assert "MB even with one link a row" in done.stderr.decode()
        return None
    assert len(done.stdout) <= budget
    data = json.loads(done.stdout)
    numbers = [value for matrix in matrices for row in matrix for value in row if value is not None]
    largest = max([value for value in numbers if value > 0], default=1)
    assert abs(data["largest"] - largest) <= 1e-6 * largest
    assert data["hasNotANumber"] == any(value is None for matrix in matrices for row in matrix for value in row)
    if data["strongest"] == 0:
        found = [weight(data, code) for code in codes(data["weights"])]
        for a, b in zip(found, [value for matrix in matrices for row in matrix for value in row], strict=True):
            assert a is b is None or abs(a - max(b, 0)) <= largest / 65534
        assert data["share"] == 1
        return data
    held = 0
    rows = [row for matrix in matrices for row in matrix]
    for row, kept, (order, _) in zip(rows, links(data), wanted, strict=True):
        assert [column for column, _ in kept] == order[:data["strongest"]]
        for column, code in kept:
            assert (code == 65535) == (row[column] is None)
            assert row[column] is None or abs(weight(data, code) - row[column]) <= largest / 65534
            held += row[column] or 0
    mass = sum(mass for _, mass in wanted)
    assert abs(data["share"] - (held / mass if mass else 1)) < 1e-5
    free = budget - len(done.stdout)
    longer = size(data["strongest"] + 1) - size(data["strongest"])
    assert longer == 0 or longer > free - 256, "another link a row would have fitted"
    return data


def random_row(chance, columns, sharpness):
    scores = [math.exp(sharpness * chance.random()) for _ in range(columns)]
    row = [score / sum(scores) for score in scores]
    for _ in range(chance.choice([0, 0, 0, 1, columns])):
        row[chance.randrange(columns)] = chance.choice([None, 0, 0, -0.5, 0.25, 0.25])
    if chance.random() < 0.1:
        row = [chance.choice([0, None])] * columns
    return [as_float(value) for value in row]


def random_maps_hold_what_fits():
    chance = random.Random(7)
    refused = whole = few = 0
    for _ in range(80):
        height, width = chance.randint(1, 12), chance.choice([1, 2, 9, 40, 300])
        count, sharpness = chance.randint(1, 3), chance.choice([1, 3, 30])
        matrices = [[random_row(chance, width, sharpness) for _ in range(height)] for _ in range(count)]
        asked = request(["r"] * height, ["c"] * width, [panel(matrix) for matrix in matrices])
        frame = len(draw("data 100000000", asked)) - 4 * -(-2 * count * height * width // 3)
        budget = frame + int(math.exp(chance.uniform(0, math.log(4 * count * height * width + 600))))
        data = check_data(asked, matrices, budget)
        refused += data is None
        whole += data is not None and data["strongest"] == 0
        few += data is not None and data["strongest"] > 0
    assert min(refused, whole, few) >= 10, (refused, whole, few)


def links_alone_are_links_in_the_page():
    rows = [[[2, 0.5], [0, 0.25], [1, 0.125]], [[1, 0.75], [0, 0.2]], [[0, 0.3], [3, 0.1]], []]
    matrix = [[0.0] * 4 for _ in rows]
    for row, given in zip(matrix, rows):
        for column, value in given:
            row[column] = as_float(value)
    asked = {**request(["a", "b", "c", "d"], panels=[{"layer": 0, "head": 0, "links": rows}]), "links_a_row": 3}
    data = check_data(asked, [matrix], 100_000, links_alone=True)
    assert data["strongest"] == 2 and [len(row) for row in links(data)] == [2, 1, 2, 0]
    assert abs(data["share"] - (0.75 + 0.75 + 0.4) / 4) < 1e-6, "a row's weights are 1 in all"
    least = len(json.dumps(data)) - 12
    assert any(check_data(asked, [matrix], budget, links_alone=True)["strongest"] == 1
               for budget in range(least, least + 300) if run(f"data {budget}", asked).returncode == 0)
    beyond = {**asked, "panels": [{"layer": 0, "head": 0, "links": [[], [[4, 0.5]], [], []]}]}
    assert "row 1 of panel 0 has a link to column 4 of 4" in refusal("html", beyond)


def a_page_that_cannot_fit_is_refused_with_an_estimate():
    panels = [{"layer": 0, "head": head} for head in range(12)]
    message = refusal("html", request(["w"] * 40_000, ["k"] * 3, text=None, panels=panels))
    assert re.search(r"about 3\.2 MB even with one link a row, 2\.\d are the most: choose fewer", message), message
    assert "MB" in refusal("html", request(["w"], text="x" * 3_100_000))
    assert "65537 columns are too many" in refusal("html", request(["w"], ["k"] * 65_537))


def check_vectors(data, asked, numbers):
    vectors = data["vectors"]
    for name, key in (("queries", "queries"), ("keys", "keys"), ("values", "values")):
        largest = max((abs(value) for value in numbers[key] if value is not None), default=0)
        assert abs(vectors[name]["largest"] - largest) <= 1e-6 * largest
        for code, value in zip(codes(vectors[name]["codes"], "h"), numbers[key], strict=True):
            if value is None:
                assert code == -32768
            else:
                assert abs(code / 32767 * vectors[name]["largest"] - value) <= 0.51 * largest / 32767
    for name, key in (("layers", "layers"), ("heads", "heads"), ("keyHeads", "key_heads"), ("d", "d"),
                      ("scale", "scale"), ("causal", "causal")):
        assert vectors[name] == asked["vectors"][key], name


def vectors_come_in_sixteen_bits():
    chance = random.Random(3)
    numbers = {"queries": [chance.uniform(-3, 3) for _ in range(12)], "keys": [0] * 6,
               "values": [0.5, None, -0.25, 1e-30, 0, 1e-6]}
    asked = {**request(["ab"], panels=[{"layer": 0, "head": 0}]), "vectors": {
        **VECTORS, **numbers, "labels": ["61", "f09f"], "row_tokens": [0], "row_token_counts": [2]}}
    data = data_of(asked)
    check_vectors(data, asked, numbers)
    assert data["vectors"]["tokens"] == ["a", "\\xF0\\x9F"]
    assert data["vectors"]["rowTokens"] == [0] and data["vectors"]["rowTokenCounts"] == [2]


def vectors_make_the_weights():
    tokens = 5
    asked = {**request(["w"] * tokens, panels=[{"layer": 1, "head": 3}]), "vectors": {
        "layers": 2, "heads": 4, "key_heads": 2, "d": 8, "tokens": tokens, "scale": 0.35, "causal": True}}
    data = data_of(asked)
    vectors = data["vectors"]
    def decoded(name):
        return [code / 32767 * vectors[name]["largest"] for code in codes(vectors[name]["codes"], "h")]
    queries, keys = decoded("queries"), decoded("keys")
    weights = [weight(data, code) for code in codes(data["weights"])]
    for i in range(tokens):
        query = queries[((1 * 4 + 3) * tokens + i) * 8:][:8]
        scores = [0.35 * sum(a * b for a, b in zip(query, keys[((1 * 2 + 1) * tokens + j) * 8:][:8])) for j in range(i + 1)]
        total = sum(map(math.exp, scores))
        for j in range(tokens):
            assert abs(weights[i * tokens + j] - (math.exp(scores[j]) / total if j <= i else 0)) < 1e-3


def vectors_go_behind_whole_weights():
    def page(tokens, d, panels, sharpness=5):
        vectors = {**VECTORS, "heads": 1, "d": d, "tokens": tokens}
        source = draw("html", {**request(["w"] * tokens, panels=[{"layer": 0, "head": -1}] * panels), "vectors": vectors,
                               "sharpness": sharpness})
        assert len(source) < PAGE_LIMIT
        data = Page(source).data
        assert (data["vectors"] is None) == data["vectorsLeftOut"]
        return data["strongest"], data["vectorsLeftOut"]
    # 100 tokens: 26,668 bytes of weights a panel, 800 · d of vectors.
    assert page(100, 64, 90) == (0, False)
    assert page(100, 1000, 90) == (0, True), "whole weights go first"
    strongest, left_out = page(200, 500, 40, 1)
    assert strongest > 0 and not left_out, "few vectors go before links"
    strongest, left_out = page(200, 800, 40, 1)
    assert strongest > 0 and left_out


tap.run([
    handed_labels, handed_causal_map, handed_generated_rows, handed_two_maps_on_one_page, handed_page_of_512_tokens,
    hard_labels_stand_in_every_place, a_page_asks_the_network_for_nothing, the_form_is_the_page_without_data,
    data_alone_are_the_page_s, the_data_say_what_the_map_is, random_maps_hold_what_fits,
    links_alone_are_links_in_the_page, a_page_that_cannot_fit_is_refused_with_an_estimate, vectors_come_in_sixteen_bits,
    vectors_make_the_weights, vectors_go_behind_whole_weights,
])
