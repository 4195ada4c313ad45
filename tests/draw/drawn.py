"""Draws through draw_map, and reads what it drew as its readers do: for the tests beside it, whose first argument is
draw_map."""
import base64
import html.parser
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree
import zlib

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

# What no file may hold: control characters, and what steers the direction of its neighbours.
INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\ufffe]")


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
    return subprocess.run([DRAW_MAP, *kind.split()], input=json.dumps(asked).encode(), capture_output=True,
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
    """A page's elements, and its data decoded from their JSON."""
    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.source = source.decode("utf-8")
        self.ids, self.scripts, self.elements, self.open, self.title = [], [], [], [], ""
        self.feed(self.source)
        self.data = self.scripts[0] and json.loads(self.scripts[0])

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.elements.append((tag, named))
        self.ids += [named["id"]] if "id" in named else []
        self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        if self.open and self.open[-1] == "title":
            self.title += data

    def labels(self):
        """Of rows and of columns."""
        return self.data["rows"], self.data["columns"] or self.data["rows"]

    def policy(self):
        return [named["content"] for tag, named in self.elements
                if tag == "meta" and named.get("http-equiv") == "Content-Security-Policy"]


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


def codes(text, kind="H"):
    """The two-byte numbers of a base64 text."""
    raw = base64.b64decode(text, validate=True)
    return struct.unpack(f"<{len(raw) // 2}{kind}", raw)


def weight(data, code):
    return None if code == 65535 else code / 65534 * data["largest"]


def links(data):
    """Of a page with links: [[(column, code)] of each row], panel by panel."""
    raw, at, lines = base64.b64decode(data["weights"], validate=True), 0, []
    while at < len(raw):
        numbers = struct.unpack_from(f"<{2 * raw[at]}H", raw, at + 1)
        lines.append(list(zip(numbers[::2], numbers[1::2])))
        at += 1 + 2 * len(numbers)
    assert at == len(raw) and len(lines) == len(data["panels"]) * len(data["rows"])
    return lines


def given_tokens(case):
    return case["input"].get("tokens") or [case["input"]["token"]]


def label_cases():
    return [case for case in CASES if case["op"] == "label" and {"token", "tokens"} & set(case["input"])]
