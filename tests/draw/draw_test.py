"""Files as their readers see them: draw_test.py DRAW_MAP."""
import ast
import base64
import html.parser
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import tap

DRAW_MAP = sys.argv[1]
CASES = json.loads((pathlib.Path(os.environ["ATTN_TEST_DATA"]) / "cases/labels.json").read_text(encoding="utf-8"))["cases"]
CASE = {case["name"]: case for case in CASES}
SVG = "{http://www.w3.org/2000/svg}"
PAGE_LIMIT = 3_000_000

HARD_LABELS = [
    "a<b<c", '"', "'", "&amp;", "<!--", "-->", "</script>", "<script>", "]]>", "\u2028x", "{{data}}", "@import",
    "مرحبا", "שלום abc", "👨\u200d👩\u200d👧", "你好", "e\u0301", "\n", "\t", "\v", " ", "\x01", "\x7f", "\u0085", "\ufffe",
    "\u202eabc", b"\xf0\x9f", b"\xff",
]


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def request(rows, columns=None, panels=None, text="some text", pair=None, shape=None):
    columns = rows if columns is None else columns
    def in_hex(label):
        return None if label is None else as_bytes(label).hex()
    height, width = shape or (len(rows), len(columns))
    return {
        "model": "model", "text": in_hex(text), "pair": in_hex(pair), "rows": height, "columns": width,
        "row_labels": [in_hex(label) for label in rows], "column_labels": [in_hex(label) for label in columns],
        "panels": panels or [{"layer": 4, "head": 7}],
    }


def run(kind, asked, **environment):
    return subprocess.run([DRAW_MAP, kind], input=json.dumps(asked).encode(), capture_output=True,
                          env={**os.environ, **environment})


def draw(kind, asked):
    done = run(kind, asked)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def refusal(kind, asked, **environment):
    done = run(kind, asked, **environment)
    assert done.returncode == 1 and not done.stdout, (done.returncode, len(done.stdout))
    return done.stderr.decode()


class Svg:
    def __init__(self, data):
        self.source = data.decode("utf-8")
        self.root = xml.etree.ElementTree.fromstring(data)
        self.texts = [element.text for element in self.root.iter(SVG + "text")]
        self.labels = [element for element in self.root.iter(SVG + "text") if element.get("class") == "label"]
        self.row_labels = [label.text for label in self.labels if label.get("text-anchor") == "end"]
        self.column_labels = [label.text for label in self.labels if label.get("text-anchor") != "end"]
        self.cells = {}
        for rect in self.root.iter(SVG + "rect"):
            title = rect.find(SVG + "title")
            if title is not None:
                self.cells[float(rect.get("x")), float(rect.get("y"))] = (rect.get("fill"), title.text)

    def matrix(self):
        """Hover texts and colours in rows, by where the cells stand."""
        down = sorted({y for _, y in self.cells})
        across = sorted({x for x, _ in self.cells})
        return [[self.cells[x, y] for x in across] for y in down]


class Page(html.parser.HTMLParser):
    def __init__(self, data):
        super().__init__(convert_charrefs=True)
        self.source = data.decode("utf-8")
        self.ids, self.labels, self.scripts, self.open = [], {"rows": [], "columns": []}, [], []
        self.list, self.attributes = None, []
        self.feed(self.source)
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.attributes += attributes
        self.ids += [named["id"]] if "id" in named else []
        self.open.append(tag)
        if tag == "ol":
            self.list = named.get("class")
        if tag == "li" and self.list in self.labels:
            self.labels[self.list].append("")
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass
        if tag == "ol":
            self.list = None

    def handle_data(self, data):
        if self.open and self.open[-1] == "bdi" and self.list in self.labels:
            self.labels[self.list][-1] += data
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data


class Png:
    """Eight-bit RGB without interlace, which is all that is written."""
    def __init__(self, data):
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        at, packed = 8, b""
        while at < len(data):
            size, kind = struct.unpack(">I4s", data[at:at + 8])
            body = data[at + 8:at + 8 + size]
            assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0]
            if kind == b"IHDR":
                self.width, self.height, *form = struct.unpack(">IIBBBBB", body)
                assert form == [8, 2, 0, 0, 0], form
            packed += body if kind == b"IDAT" else b""
            at += 12 + size
        self.packed, self.rows = packed, None

    def unfilter(self):
        data = zlib.decompress(self.packed)
        stride, rows, above = self.width * 3, [], bytearray(self.width * 3)
        for y in range(self.height):
            begin = y * (stride + 1)
            kind, row = data[begin], bytearray(data[begin + 1:begin + 1 + stride])
            for x in range(stride):
                left, corner = (row[x - 3], above[x - 3]) if x >= 3 else (0, 0)
                if kind == 1:
                    row[x] = (row[x] + left) & 255
                elif kind == 2:
                    row[x] = (row[x] + above[x]) & 255
                elif kind == 3:
                    row[x] = (row[x] + (left + above[x]) // 2) & 255
                elif kind == 4:
                    guess = left + above[x] - corner
                    near = min((abs(guess - value), i, value) for i, value in enumerate((left, above[x], corner)))
                    row[x] = (row[x] + near[2]) & 255
            rows.append(row)
            above = row
        return rows

    def pixel(self, x, y):
        self.rows = self.rows or self.unfilter()
        return tuple(self.rows[y][3 * x:3 * x + 3])


def decode_weights(data):
    raw = base64.b64decode(data["weights"], validate=True)
    return struct.unpack(f"<{len(raw) // 2}H", raw)


def given_tokens(case):
    return case["input"].get("tokens") or [case["input"]["token"]]


def label_cases():
    return [case for case in CASES if case["op"] == "label" and {"token", "tokens"} & set(case["input"])]


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


def handed_labels_in_html():
    for case in label_cases():
        tokens = given_tokens(case)
        page = Page(draw("html", request(tokens)))
        if "shown" in case["expected"]:
            assert page.labels["rows"] == page.labels["columns"] == [case["expected"]["shown"]], case["name"]
        assert all(label.strip() for label in page.labels["rows"])
        assert len(set(page.labels["rows"])) == len(tokens)
        for text in case["expected"].get("never_in_script", []):
            assert all(text not in script for script in page.scripts)
        for text in case["expected"].get("never_in_markup", []):
            assert text not in page.source


def handed_labels_in_json():
    for case in label_cases():
        tokens = given_tokens(case)
        assert json.loads(draw("json", request(tokens)))["words"] == tokens


def hard_labels_leave_every_file_well_formed():
    for labels in [HARD_LABELS] + [[label] for label in HARD_LABELS]:
        picture = Svg(draw("svg", request(labels, text="".join(l for l in labels if isinstance(l, str)))))
        page = Page(draw("html", request(labels)))
        shown = page.labels["rows"]
        assert picture.row_labels == picture.column_labels == shown == page.labels["columns"]
        assert len(set(shown)) == len(labels) and all(label.strip() for label in shown)
        assert len(page.scripts) == 2
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\ufffe]", picture.source + page.source)
        assert len(json.loads(draw("json", request(labels)))["words"]) == len(labels)


def labels_are_isolated():
    picture = Svg(draw("svg", request(HARD_LABELS)))
    assert all(label.get("unicode-bidi") == "plaintext" for label in picture.labels)
    page = draw("html", request(["مرحبا"])).decode()
    assert "<li><bdi>مرحبا</bdi></li>" in page


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
    assert decode_weights(Page(draw("html", asked)).data)[:3] == (65534, 0, 0)
    assert json.loads(draw("json", asked))["heads"][0]["weights"] == [[1, 0, 0], [0.5, 0.5, 0], [0.7, 0.2, 0.1]]


def handed_generated_rows():
    case = CASE["three_new_tokens_after_four"]
    expected = case["expected"]
    asked = request(expected["row_labels"], expected["column_labels"])
    picture, page = Svg(draw("svg", asked)), Page(draw("html", asked))
    assert picture.row_labels == page.labels["rows"] == expected["row_labels"]
    assert picture.column_labels == page.labels["columns"] == expected["column_labels"]
    assert [len(picture.matrix()), len(picture.matrix()[0])] == [3, 7]


def handed_labels_that_do_not_fit():
    given = CASE["labels_do_not_fit"]["input"]
    asked = request(given["row_labels"], given["column_labels"], shape=(given["rows"], given["columns"]))
    for kind in ["svg", "png", "html", "json", "npy"]:
        assert CASE["labels_do_not_fit"]["expected"]["refused"] in refusal(kind, asked)


def handed_two_maps_on_one_page():
    pages = [Page(draw("html", request(["a", "b"]))), Page(draw("html", request(["b", "c"])))]
    ids = pages[0].ids + pages[1].ids
    assert len(ids) == len(set(ids))
    for page in pages:
        for text in CASE["two_maps_on_one_page"]["expected"]["page_never_contains"]:
            assert text not in page.source
        assert not [name for name, _ in page.attributes if name in ("src", "href", "srcset", "action")]
    assert "id=" not in draw("svg", request(["a"])).decode()
    assert "href" not in draw("svg", request(["a"])).decode()


def handed_page_of_512_tokens():
    given = CASE["page_of_512_tokens"]
    tokens = [f"token{i}" for i in range(given["input"]["tokens"])]
    panels = [{"layer": layer, "head": head} for layer in range(12) for head in range(12)]
    data = draw("html", request(tokens, panels=panels))
    assert len(data) < given["expected"]["page_bytes_below"]
    page = Page(data).data
    strongest = page["strongest"]
    assert strongest >= 5 and 0 < page["share"] < 1
    codes = decode_weights(page)
    assert len(codes) == 144 * 512 * strongest * 2
    longer = len(data) + 144 * 512 * 4 * 4 // 3
    assert longer > PAGE_LIMIT - 1000, "another weight a row would have fitted"


def the_page_keeps_the_strongest_of_each_row():
    width = 1500
    rows = [[((i * 7919 + j * 104729) % 10007) / 10007 for j in range(width)] for i in range(900)]
    asked = request([f"q{i}" for i in range(900)], [f"k{j}" for j in range(width)],
                    panels=[{"layer": 0, "head": 0, "weights": [w for row in rows for w in row]}])
    page = Page(draw("html", asked)).data
    strongest, codes = page["strongest"], decode_weights(page)
    assert 500 < strongest < width
    for i in (0, 1, 450, 899):
        links = codes[i * strongest * 2:(i + 1) * strongest * 2]
        kept = dict(zip(links[::2], links[1::2]))
        assert sorted(kept) == sorted(sorted(range(width), key=lambda j: (-rows[i][j], j))[:strongest])
        for j, code in kept.items():
            assert abs(code / 65534 * page["largest"] - rows[i][j]) <= 1e-5


def a_page_that_cannot_fit_is_refused_with_an_estimate():
    message = refusal("html", request(["w"] * 40_000, ["k"] * 60, text=None, panels=[{"layer": 0, "head": h} for h in range(12)]))
    assert "MB" in message and "3.0" in message, message
    assert "MB" in refusal("html", request(["w"], text="x" * 3_100_000))


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
    page = Page(draw("html", asked)).data
    assert page["hasNotANumber"] and decode_weights(page)[1] == 65535
    assert "not a number" not in Svg(draw("svg", request(["a", "b"]))).texts


def json_says_what_the_map_is():
    panels = [{"layer": -1, "head": -1, "weights": [0.1]}, {"layer": 4, "head": -1, "weights": [0.2]},
              {"layer": 4, "head": 7, "weights": [0.3]}]
    text = "a\0b\n</script>"
    found = json.loads(draw("json", request(["a"], text=text, panels=panels)))
    assert list(found) == ["model", "text", "pair", "words", "heads"]
    assert found["text"] == text and found["pair"] is None and found["model"] == "model"
    assert [(head["layer"], head["head"]) for head in found["heads"]] == [(None, None), (4, None), (4, 7)]
    assert [head["weights"] for head in found["heads"]] == [[[0.1]], [[0.2]], [[0.3]]]
    assert json.loads(draw("json", request(["a"], pair="c")))["pair"] == "c"
    assert json.loads(draw("json", request([b"a\xff"])))["words"] == ["a\ufffd"]
    wide = json.loads(draw("json", request(["a"], ["b", "a"], panels=[{**panels[0], "weights": [0.1, 0.2]}])))
    assert list(wide) == ["model", "text", "pair", "words", "columns", "heads"]
    assert wide["words"] == ["a"] and wide["columns"] == ["b", "a"] and wide["heads"][0]["weights"] == [[0.1, 0.2]]


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
    handed_labels_in_svg, handed_labels_in_html, handed_labels_in_json, hard_labels_leave_every_file_well_formed,
    labels_are_isolated, long_labels_are_cut_and_whole_on_hover, handed_causal_map, handed_generated_rows,
    handed_labels_that_do_not_fit, handed_two_maps_on_one_page, handed_page_of_512_tokens,
    the_page_keeps_the_strongest_of_each_row, a_page_that_cannot_fit_is_refused_with_an_estimate,
    pictures_that_cannot_fit_are_refused_with_an_estimate, a_large_svg_merges_cells,
    a_weight_that_is_no_number_is_told, json_says_what_the_map_is, npy_is_what_numpy_reads,
    png_stands_the_right_way_up, png_draws_what_no_font_has_and_every_script, png_without_a_font_names_a_package,
])
