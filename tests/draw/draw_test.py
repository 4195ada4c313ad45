"""Pictures, JSON and .npy as their readers see them: draw_test.py DRAW_MAP."""
import ast
import json
import math
import pathlib
import re
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import tap
from drawn import CASE, HARD_LABELS, INVISIBLE, SVG, Page, Png, Svg, draw, given_tokens, label_cases, refusal, request, run


def handed_labels_in_svg():
    for case in label_cases():
        tokens = given_tokens(case)
        picture = Svg(draw("svg", request(tokens)))
        if "shown" in case["expected"]:
            assert picture.row_labels == picture.column_labels == [case["expected"]["shown"]], case["name"]
        assert all(label.strip() for label in picture.row_labels)
        assert len(set(picture.row_labels)) == len(tokens)
        for text in case["expected"].get("never_in_markup", []):
            assert text not in picture.source


def handed_labels_in_json():
    for case in label_cases():
        tokens = given_tokens(case)
        assert json.loads(draw("json", request(tokens)))["words"] == tokens


def hard_labels_leave_pictures_well_formed():
    for labels in [HARD_LABELS] + [[label] for label in HARD_LABELS]:
        picture = Svg(draw("svg", request(labels, text="".join(l for l in labels if isinstance(l, str)))))
        shown = picture.row_labels
        assert shown == picture.column_labels == Page(draw("html", request(labels))).labels()[0]
        assert len(set(shown)) == len(labels) and all(label.strip() for label in shown)
        assert not INVISIBLE.search(picture.source)
        assert len(json.loads(draw("json", request(labels)))["words"]) == len(labels)


def labels_are_isolated():
    picture = Svg(draw("svg", request(HARD_LABELS)))
    assert all(label.get("unicode-bidi") == "plaintext" for label in picture.labels)


def long_labels_are_cut_and_whole_on_hover():
    word = "Donaudampfschifffahrtsgesellschaftskapitän"
    picture = Svg(draw("svg", request([word, "👨\u200d👩\u200d👧" * 20])))
    assert picture.row_labels == [word[:23] + "…", "👨\u200d👩\u200d👧" * 11 + "…"]
    assert word in [title.text for title in picture.root.iter(SVG + "title")]


def handed_causal_map():
    case = CASE["causal_map_of_three"]
    tokens, weights = case["input"]["tokens"], case["input"]["weights"]["data"]
    asked = request(tokens, panels=[{"layer": 0, "head": 0, "weights": weights}])
    picture = Svg(draw("svg", asked))
    assert picture.row_labels == picture.column_labels == tokens
    matrix = picture.matrix()
    for i, row in enumerate(matrix):
        for j, (fill, hover) in enumerate(row):
            assert hover == f"query: {tokens[i]}\nkey: {tokens[j]}\nweight: {weights[3 * i + j]:.4f}"
            assert (fill == matrix[0][1][0]) == (j > i), "the upper right corner is empty, and only it"
    assert any("query" in text for text in picture.texts) and any("key" in text for text in picture.texts)
    assert json.loads(draw("json", asked))["heads"][0]["weights"] == [[1, 0, 0], [0.5, 0.5, 0], [0.7, 0.2, 0.1]]


def handed_generated_rows():
    case = CASE["three_new_tokens_after_four"]
    expected = case["expected"]
    asked = request(expected["row_labels"], expected["column_labels"])
    picture = Svg(draw("svg", asked))
    assert picture.row_labels == expected["row_labels"] and picture.column_labels == expected["column_labels"]
    assert [len(picture.matrix()), len(picture.matrix()[0])] == [3, 7]


def handed_labels_that_do_not_fit():
    given = CASE["labels_do_not_fit"]["input"]
    asked = request(given["row_labels"], given["column_labels"], shape=(given["rows"], given["columns"]))
    for kind in ["svg", "png", "html", "data", "json", "npy"]:
        assert CASE["labels_do_not_fit"]["expected"]["refused"] in refusal(kind, asked)


def pictures_that_cannot_fit_are_refused_with_an_estimate():
    panels = [{"layer": 0, "head": head} for head in range(40)]
    words = ["w"] * 400
    assert re.search(r"about \d+ MB", refusal("svg", request(words, panels=panels)))
    assert re.search(r"\d+ × \d+ pixels", refusal("png", request(words, panels=panels)))


def a_large_svg_merges_cells():
    size = 200
    weights = [1.0 if i == j else 0.5 if j < i else 0.0 for i in range(size) for j in range(size)]
    data = draw("svg", request(["w"] * size, panels=[{"layer": 0, "head": 0, "weights": weights}]))
    picture = Svg(data)
    drawn = [[0.0] * size for _ in range(size)]
    paths = list(picture.root.iter(SVG + "path"))
    assert len(paths) == 2
    for path, value in zip(paths, (0.5, 1.0)):
        for x, y, length in re.findall(r"M(\d+) (\d+)h(\d+)", path.get("d")):
            for j in range(int(x), int(x) + int(length)):
                drawn[int(y)][j] = value
    assert [value for row in drawn for value in row] == weights


def a_weight_that_is_no_number_is_told():
    panels = [{"layer": 0, "head": 0, "weights": [0.5, None, 0.25, 0.125]}]
    asked = request(["a", "b"], panels=panels)
    picture = Svg(draw("svg", asked))
    fills = [fill for row in picture.matrix() for fill, _ in row]
    assert picture.matrix()[0][1][1].endswith("weight: not a number")
    assert fills.count(fills[1]) == 1 and "not a number" in picture.texts
    assert json.loads(draw("json", asked))["heads"][0]["weights"][0][1] is None
    assert "not a number" not in Svg(draw("svg", request(["a", "b"]))).texts


def json_says_what_the_map_is():
    panels = [{"layer": -1, "head": -1, "weights": [0.1]}, {"layer": 4, "head": -1, "weights": [0.2]},
              {"layer": 4, "head": 7, "weights": [0.3]}]
    text = "a\0b\n</script>"
    found = json.loads(draw("json", request(["a"], text=text, panels=panels)))
    assert list(found) == ["model", "text", "pair", "measure", "renormalized", "words", "heads"]
    assert found["text"] == text and found["pair"] is None and found["model"] == "model"
    assert [(head["layer"], head["head"]) for head in found["heads"]] == [(None, None), (4, None), (4, 7)]
    assert [head["weights"] for head in found["heads"]] == [[[0.1]], [[0.2]], [[0.3]]]
    assert found["measure"] is None and found["renormalized"] is False
    assert json.loads(draw("json", request(["a"], pair="c")))["pair"] == "c"
    assert json.loads(draw("json", request([b"a\xff"])))["words"] == ["a\ufffd"]
    wide = json.loads(draw("json", request(["a"], ["b", "a"], panels=[{**panels[0], "weights": [0.1, 0.2]}])))
    assert list(wide) == ["model", "text", "pair", "measure", "renormalized", "words", "columns", "heads"]
    assert wide["words"] == ["a"] and wide["columns"] == ["b", "a"] and wide["heads"][0]["weights"] == [[0.1, 0.2]]


def every_format_says_the_measure():
    panels = [{"layer": 0, "head": 0, "weights": [0.5, 0.25, 0.125, None]}]
    asked = {**request(["a", "b"], panels=panels), "measure": "norm of <what> the key adds", "renormalized": True}
    picture, found = Svg(draw("svg", asked)), json.loads(draw("json", asked))
    legend = [text for text in picture.texts if text.startswith("norm of <what> the key adds, as a share of what is shown")]
    assert len(legend) == 1 and legend[0].endswith("from 0 to the largest in this picture")
    hovers = [hover for row in picture.matrix() for _, hover in row]
    assert hovers[0] == "query: a\nkey: a\nnorm of <what> the key adds: 0.5000" and hovers[3].endswith("adds: not a number")
    assert found["measure"] == "norm of <what> the key adds" and found["renormalized"] is True
    del asked["measure"]
    picture = Svg(draw("svg", asked))
    assert any(text.startswith("share of the weight shown, from 0") for text in picture.texts)
    assert any(text.startswith("attention weight, from 0") for text in Svg(draw("svg", request(["a"]))).texts)


def links_alone_are_no_picture():
    asked = {**request(["a", "b"]), "links_a_row": 1}
    for kind in ["svg", "png", "json", "npy"]:
        assert "only an .html page shows them" in refusal(kind, asked), kind


def npy_is_what_numpy_reads():
    weights = [[0.1, 0.2, 0.3], [0.4, 0.5, math.pi]]
    panels = [{"layer": 0, "head": head, "weights": [w for row in weights for w in row]} for head in range(2)]
    data = draw("npy", request(["a", "b"], ["x", "y", "z"], panels=panels))
    assert data[:8] == b"\x93NUMPY\x01\x00"
    size = struct.unpack("<H", data[8:10])[0]
    header = data[10:10 + size].decode("ascii")
    assert (10 + size) % 64 == 0 and header.endswith("\n")
    assert ast.literal_eval(header) == {"descr": "<f4", "fortran_order": False, "shape": (2, 2, 3)}
    body = struct.unpack("<12f", data[10 + size:])
    assert max(abs(a - b) for a, b in zip(body, [w for row in weights for w in row] * 2)) < 1e-6


def png_stands_the_right_way_up():
    weights = CASE["causal_map_of_three"]["input"]["weights"]["data"]
    asked = request(["a", "b", "c"], panels=[{"layer": 0, "head": 0, "weights": weights}])
    done = run("png", asked)
    if b"needs a font" in done.stderr:
        raise tap.Skip("this machine has no font")
    picture, drawing = Png(done.stdout), Svg(draw("svg", asked))
    fills = [[tuple(int(fill[i:i + 2], 16) for i in (1, 3, 5)) for fill, _ in row] for row in drawing.matrix()]
    # The last row has three colours of its own: it is found by the cell of weight 0.2, then its neighbours.
    dark, half, pale, empty = fills[0][0], fills[1][0], fills[2][1], fills[0][2]
    places = {}
    for y in range(0, picture.height, 2):
        for x in range(0, picture.width, 2):
            color = picture.pixel(x, y)
            if color in (dark, half, pale, empty):
                places.setdefault(color, []).append((x, y))
    # The legend, below the matrix, has single columns of these colours too: half a cell's area is none.
    def center(color):
        lines = [(x, y) for x, y in places[color] if y < bottom]
        return sum(x for x, _ in lines) / len(lines), sum(y for _, y in lines) / len(lines)
    bottom = picture.height * 0.72
    assert center(dark)[0] < center(pale)[0] and center(dark)[1] < center(half)[1] < center(pale)[1]
    assert center(empty)[0] > center(half)[0] and center(empty)[1] < center(pale)[1], "the empty corner is upper right"
    assert len({picture.pixel(x, y) for y in range(0, picture.height // 3) for x in range(picture.width)}) > 20


def png_draws_what_no_font_has_and_every_script():
    done = run("png", request(HARD_LABELS + ["\U000e1234", "\U0010fffd"]))
    if b"needs a font" in done.stderr:
        raise tap.Skip("this machine has no font")
    assert done.returncode == 0, done.stderr
    picture = Png(done.stdout)
    assert picture.width > 600 and picture.height > 600


def png_without_a_font_names_a_package():
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "fonts.conf"
        config.write_text("<fontconfig></fontconfig>")
        message = refusal("png", request(["a"]), FONTCONFIG_FILE=str(config))
    assert "fonts-dejavu-core" in message, message


tap.run([
    handed_labels_in_svg, handed_labels_in_json, hard_labels_leave_pictures_well_formed, labels_are_isolated,
    long_labels_are_cut_and_whole_on_hover, handed_causal_map, handed_generated_rows, handed_labels_that_do_not_fit,
    pictures_that_cannot_fit_are_refused_with_an_estimate, a_large_svg_merges_cells,
    a_weight_that_is_no_number_is_told, json_says_what_the_map_is, every_format_says_the_measure,
    links_alone_are_no_picture, npy_is_what_numpy_reads, png_stands_the_right_way_up,
    png_draws_what_no_font_has_and_every_script, png_without_a_font_names_a_package,
])
