"""Who reads a page in a browser: what stands there, and where to click.

A test file makes one Reader, whose browser starts with the first page, and calls run(READER, [tests])."""
import sys
from pathlib import Path
from urllib.parse import parse_qsl

sys.path.append(str(Path(__file__).resolve().parent))

from browser import Browser, tap  # noqa: E402

OPENED = """const maps = [...document.querySelectorAll(".attention-map")];
return maps.length > 0 && maps.every((map) => "open" in map.dataset)"""
TEXTS = "return [...document.querySelectorAll(arguments[0])].map((element) => element.textContent)"
DRAWN = "return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
# [height, width, colours from the top left, red · 65536 + green · 256 + blue]
PIXELS = """const canvas = document.querySelector(arguments[0]);
const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
const colors = [];
for (let i = 0; i < data.length; i += 4) colors.push((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
return [canvas.height, canvas.width, colors]"""
# How many pixels a canvas has that are not transparent.
INK = """const canvas = document.querySelector(arguments[0]);
const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
return data.filter((value, i) => i % 4 === 3 && value > 0).length"""


class Reader:
    def __init__(self):
        self.started = None

    @property
    def browser(self):
        self.started = self.started or Browser()
        return self.started

    def close(self):
        if self.started:
            self.started.close()

    def show(self, address, fragment="#show=special"):
        """Opens a page anew, by default with the tokens that the model adds, and waits for its first view.
        What was logged before is forgotten."""
        self.browser.console()
        self.browser.requests()
        self.browser.open(address + fragment)
        self.browser.wait_for(OPENED)

    def wait_until_drawn(self):
        self.browser.execute(DRAWN)

    def find(self, selector):
        return self.browser.find(selector)

    def text(self, selector):
        return self.browser.text(self.find(selector))

    def texts(self, selector):
        return self.browser.execute(TEXTS, selector)

    def fragment(self):
        return dict(parse_qsl(self.browser.address_shown().partition("#")[2]))

    def view(self):
        """The view that is chosen, which must be the one that is seen."""
        chosen = self.browser.execute('return [...document.querySelectorAll("[role=tab][aria-selected=true]")].map((tab) => tab.dataset.view)')
        seen = self.browser.execute('return [...document.querySelectorAll("[role=tabpanel]")].filter((panel) => panel.checkVisibility()).map((panel) => panel.dataset.view)')  # fmt: skip
        assert chosen == seen and len(seen) == 1, (chosen, seen)
        return seen[0]

    def tab(self, view):
        return self.find(f"[role=tab][data-view={view}]")

    def query(self, row):
        return self.find(f'.queries [data-row="{row}"]')

    def key(self, column):
        return self.find(f'.keys [data-column="{column}"]')

    def head(self, name):
        """The square of a head, by its name for ears."""
        return self.browser.execute("return document.querySelector(`.head-toggle input[aria-label=\"${arguments[0]}\"]`).parentElement", name)

    def heads(self):
        return self.browser.execute('return [...document.querySelectorAll(".head-toggle input:checked")].map((input) => input.getAttribute("aria-label"))')  # fmt: skip

    def words(self, side="queries"):
        return self.texts(f".{side} bdi")

    def linked(self):
        """The words at the other end of the lines that are seen."""
        return self.texts(".linked bdi")

    def ranking(self):
        words, weights = self.texts(".ranking bdi"), self.texts(".ranking .number")
        return dict(zip(words, map(float, weights)))

    def pixels(self, selector):
        height, width, colors = self.browser.execute(PIXELS, selector)
        return [colors[row * width : (row + 1) * width] for row in range(height)]

    def ink(self, selector):
        self.wait_until_drawn()
        return self.browser.execute(INK, selector)


def run(reader, tests):
    try:
        tap.run(tests)
    finally:
        reader.close()
