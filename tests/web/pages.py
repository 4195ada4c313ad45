"""Pages to look at: made by attn of a model, or by draw_map of what a test describes.

    pages = Pages(ATTN, DRAW_MAP)
    browser.open(pages.of_text("The robot …", "--causal"))
    browser.open(pages.of_map(words=["a", "b"], heads=2))
"""
import atexit
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from browser import tap

SENTENCE = "The robot picked up the screwdriver because it was heavy."
PAGE_LIMIT = 3_000_000

HOSTILE = [
    "a<b<c", '"', "'", "&amp;", "<!--", "-->", "</script>", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>",
    "{{data}}", "مرحبا", "שלום abc", "\u202eabc", "👨\u200d👩\u200d👧", "e\u0301", "你好", "constructor", "__proto__",
]  # fmt: skip
RIGHT_TO_LEFT = "القطة جلست على السجادة لأنها كانت دافئة .".split()


def long_text(words):
    """So many words, no two sentences alike."""
    some = "the cat that we saw near a house ran over old stones and then it slept while rain fell on green hills".split()
    return " ".join(some[(i * i + 3 * i) % len(some)] for i in range(words))


class Pages:
    def __init__(self, attn, draw_map):
        self.attn = attn
        self.draw_map = draw_map
        folder = tempfile.TemporaryDirectory(prefix="attn-web-")
        atexit.register(folder.cleanup)
        self.folder = Path(folder.name)
        self.made = {}

    def _keep(self, key, make):
        """Each page is made once."""
        if key not in self.made:
            path = self.folder / f"{len(self.made)}.html"
            path.write_bytes(make())
            self.made[key] = path
        return self.made[key].as_uri()

    def model(self):
        folder = os.environ.get("ATTN_TEST_MODEL")
        if not folder:
            raise tap.Skip("ATTN_TEST_MODEL names no model")
        return folder

    def of_text(self, text=SENTENCE, *options, model=None):
        model = model or self.model()

        def make():
            path = self.folder / "made.html"
            done = subprocess.run([self.attn, "look", "-m", model, "-o", path, *options, text], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            return path.read_bytes()

        return self._keep(("text", model, text, options), make)

    def of_map(self, words, layers=1, heads=2, means=False, **more):
        """Of random weights, or of random vectors where `more` has "vectors"; see tests/draw/map_request.h."""
        request = {
            "model": "a model", "text": " ".join(words).encode().hex(), "rows": len(words), "columns": len(words),
            "row_labels": [word.encode().hex() for word in words], "column_labels": [word.encode().hex() for word in words],
            "panels": [{"layer": layer, "head": head} for layer in range(layers) for head in range(heads)], **more,
        }  # fmt: skip
        if means:
            request["panels"] += [{"layer": layer, "head": -1} for layer in range(layers)] + [{"layer": -1, "head": -1}]
        text = json.dumps(request)

        def make():
            done = subprocess.run([self.draw_map, "html"], input=text.encode(), capture_output=True)
            assert done.returncode == 0, done.stderr.decode()
            return done.stdout

        return self._keep(text, make)

    def of_vectors(self, words, layers=2, heads=4, key_heads=2, d=8, causal=True):
        vectors = {"layers": layers, "heads": heads, "key_heads": key_heads, "d": d, "tokens": len(words),
                   "scale": d**-0.5, "causal": causal}  # fmt: skip
        return self.of_map(words, layers, heads, vectors=vectors)

    def joined(self, *addresses):
        """One document with the bodies of several pages."""

        def make():
            texts = [self.path(address).read_text(encoding="utf-8") for address in addresses]
            bodies = [re.search(r"<body>(.*)</body>", text, re.DOTALL)[1] for text in texts]
            head = texts[0][: texts[0].index("<body>")]
            return f"{head}<body>{''.join(bodies)}</body></html>".encode()

        return self._keep(addresses, make)

    def path(self, address):
        return next(path for path in self.made.values() if path.as_uri() == address)
