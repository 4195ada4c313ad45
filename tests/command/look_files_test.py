"""attn look -o: a file in each form, whole or not at all."""
import array
import ast
import json
import os
import resource
import signal
import struct
import xml.etree.ElementTree as ElementTree
import zlib
from html.parser import HTMLParser

from tool import FOLDER, SENTENCE, attn, fails, model, succeeds, tap

HEADS = ["--head", "L4H7", "--head", "L0H0"]
WORDS = SENTENCE[:-1].split() + ["."]


def write(name, *arguments):
    """The new file's bytes; the tool prints nothing."""
    path = FOLDER / name
    path.parent.mkdir(exist_ok=True)
    assert succeeds("look", "-m", str(model()), SENTENCE, *arguments, "-o", str(path)) == ""
    return path.read_bytes()


def json_is_what_is_printed():
    printed = succeeds("look", "-m", str(model()), SENTENCE, *HEADS, "--json")
    assert write("map.json", *HEADS).decode() == printed
    path = FOLDER / "both.json"
    assert succeeds("look", "-m", str(model()), SENTENCE, *HEADS, "--json", "-o", str(path)) == printed
    assert path.read_text() == printed


def npy_is_float32_heads_words_words():
    content = write("map.npy", *HEADS)
    assert content[:8] == b"\x93NUMPY\x01\x00"
    size, = struct.unpack("<H", content[8:10])
    header = ast.literal_eval(content[10:10 + size].decode())
    shape = (2, len(WORDS), len(WORDS))
    assert header == {"descr": "<f4", "fortran_order": False, "shape": shape}, header
    assert (10 + size) % 64 == 0
    values = array.array("f", content[10 + size:])
    heads = json.loads(write("map.json", *HEADS))["heads"]
    wanted = [weight for head in heads for row in head["weights"] for weight in row]
    assert len(values) == len(wanted)
    assert all(abs(a - b) <= 1e-7 for a, b in zip(values, wanted))


def renormalize_reaches_the_file():
    content = write("rows.npy", "--renormalize")
    values = array.array("f", content[-4 * len(WORDS) ** 2:])
    for row in range(len(WORDS)):
        assert abs(sum(values[row * len(WORDS):(row + 1) * len(WORDS)]) - 1) <= 1e-5
    plain, shares = (write("legend.svg", *options).decode() for options in ([], ["--renormalize"]))
    assert "attention weight, from 0" in plain and "share of the weight shown" not in plain
    assert "share of the weight shown, from 0" in shares


def svg_is_xml_with_labels_and_panels():
    root = ElementTree.fromstring(write("map.svg", *HEADS))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    text = "".join(root.itertext())
    for label in ["screwdriver", "because", "heavy", "L4H7", "L0H0"]:
        assert label in text, label


def png_is_whole():
    content = write("map.png")
    assert content[:8] == b"\x89PNG\r\n\x1a\n" and content[12:16] == b"IHDR"
    width, height = struct.unpack(">II", content[16:24])
    assert 100 < width < 10000 and 100 < height < 10000
    at, kinds = 8, []
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at:at + 8])
        check, = struct.unpack(">I", content[at + 8 + length:at + 12 + length])
        assert zlib.crc32(content[at + 4:at + 8 + length]) == check
        kinds.append(kind)
        at += 12 + length
    assert kinds[-1] == b"IEND"


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links = []

    def handle_starttag(self, tag, attributes):
        self.links += [value for name, value in attributes
                       if name in ("src", "href") and not (value or "").startswith(("#", "data:"))]


def html_needs_nothing_else():
    text = write("map.html", *HEADS).decode()
    assert text.lower().startswith("<!doctype html>") and "screwdriver" in text
    page = Page()
    page.feed(text)
    assert page.links == [], page.links
    for word in ["@import", "fetch(", "XMLHttpRequest"]:
        assert word not in text, word


def suffix_in_capitals():
    assert write("MAP.JSON") == write("map.json")


def an_unwritable_file_is_told():
    look = ["look", "-m", str(model()), SENTENCE, "-o"]
    fails(1, "absent/map.svg", *look, str(FOLDER / "absent" / "map.svg"))
    (FOLDER / "folder.svg").mkdir()
    fails(1, "folder.svg", *look, str(FOLDER / "folder.svg"))


def nothing_half_written_is_left():
    folder = FOLDER / "small"
    folder.mkdir()
    old = folder / "old.json"
    old.write_text("what was there")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        # Every form is larger; Clang's OpenMP runtime, which shares 1024 bytes, ends with less.
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

    for name in ["new.json", "new.svg", "new.html", "old.json"]:
        fails(1, [name, "too large"], "look", "-m", str(model()), SENTENCE, "-o", str(folder / name),
              preexec_fn=limit)
    assert os.listdir(folder) == ["old.json"] and old.read_text() == "what was there"


def a_failed_run_keeps_the_old_file():
    folder = FOLDER / "kept"
    folder.mkdir()
    path = folder / "map.json"
    path.write_text("what was there")
    fails(1, "hammer", "look", "-m", str(model()), SENTENCE, "--from", "hammer", "-o", str(path))
    fails(1, "L9H0", "look", "-m", str(model()), SENTENCE, "--head", "L9H0", "-o", str(path))
    assert os.listdir(folder) == ["map.json"] and path.read_text() == "what was there"


def a_link_is_written_through():
    target = FOLDER / "target.json"
    target.write_text("old")
    link = FOLDER / "link.json"
    link.symlink_to(target)
    result = attn("look", "-m", str(model()), SENTENCE, "-o", str(link))
    assert result.status == 0, result.err
    assert json.loads(link.read_text())["words"] == WORDS


def a_limit_on_file_sizes_is_told():
    folder = FOLDER / "limited"
    folder.mkdir()
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
    path = folder / "map.png"
    fails(1, [str(path), "cannot be written"], "look", "-m", str(model()), SENTENCE, "-o", str(path),
          preexec_fn=limit)
    assert list(folder.iterdir()) == []


tap.run([
    json_is_what_is_printed,
    npy_is_float32_heads_words_words,
    renormalize_reaches_the_file,
    svg_is_xml_with_labels_and_panels,
    png_is_whole,
    html_needs_nothing_else,
    suffix_in_capitals,
    an_unwritable_file_is_told,
    nothing_half_written_is_left,
    a_limit_on_file_sizes_is_told,
    a_failed_run_keeps_the_old_file,
    a_link_is_written_through,
])
