"""The page as one file: the frame, styles and scripts of the tool's pages, and the data of one text."""
import functools
import html
import importlib.resources
import re

from attn.page.data import PageMap, page_data
from attn.page.label import show

__all__ = ["PAGE_LIMIT", "make_page"]

PAGE_LIMIT = 3_000_000  # bytes that a page stays below

# A page that asks for nothing has no code that could, and loads nothing from anywhere.
_POLICY = ("default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
           "base-uri 'none'; form-action 'none'")

# {{title}}, or {{style first.css second.css}} with the files that stand there.
_PLACE = re.compile(r"{{(\w+)(?:\s([^{}]+))?}}")


def _read(name: str) -> str:
    text = (importlib.resources.files("attn") / "page" / name).read_text(encoding="utf-8")
    return text if text.endswith("\n") else text + "\n"


@functools.cache
def _frame() -> str:
    """page.html with all that is the same in every page."""

    def fill(place: re.Match[str]) -> str:
        files = "".join(map(_read, (place[2] or "").split()))
        if place[1] == "script":
            # All scripts share one function, so that two pages in one document keep their names apart.
            return f'(() => {{\n"use strict";\n{files}}})();\n'
        return {"style": files, "policy": _POLICY, "ask": ""}.get(place[1], place[0])

    return _PLACE.sub(fill, _read("page.html"))


def make_page(page: PageMap) -> str:
    """HTML without anything beside it, of less than PAGE_LIMIT bytes. ValueError for a text too long for one."""
    title = "Attention" + (f" in {show(page.model)}" if page.model else "")
    before, after = (part.replace("{{title}}", html.escape(title).replace("&#x27;", "&#39;"))
                     for part in _frame().split("{{data}}"))
    frame_size = len(before.encode()) + len(after.encode())
    return before + page_data(page, PAGE_LIMIT - 1 - frame_size) + after
