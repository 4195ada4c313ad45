"""What pages look like, kept to be looked at: pictures_test.py ATTN DRAW_MAP PICTURES.

Each view in light and dark and on a narrow screen, as PNG files in the folder PICTURES.
"""
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

from pages import HOSTILE, RIGHT_TO_LEFT, SENTENCE, Pages  # noqa: E402
from reader import Reader, run  # noqa: E402

PAGES = Pages(sys.argv[1], sys.argv[2])
PICTURES = Path(sys.argv[3])
READER = Reader()
SCREENS = {"light": ("light", 1280), "dark": ("dark", 1280), "narrow": ("light", 390), "narrow-dark": ("dark", 390)}


def keep(pages, screens):
    """pages: {name: (address, fragment)}; screens: some of SCREENS."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    browser = READER.browser
    try:
        for screen in screens:
            scheme, width = SCREENS[screen]
            browser.prefer(scheme)
            browser.resize(width, 900)
            for name, (address, fragment) in pages.items():
                READER.show(address, "#" + fragment)
                if name.startswith("made"):
                    browser.click(READER.find(f".made-steps li:nth-child({name[-1]}) button"))
                READER.wait_until_drawn()
                # Of long pages what the window shows, where scrolled lists are drawn.
                path = PICTURES / f"{name}-{screen}.png"
                browser.screenshot(path, whole=not name.startswith("long"))
                assert path.stat().st_size > 5000, path
                assert browser.console() == [], path
    finally:
        browser.prefer("light")
        browser.resize(1280, 900)


def the_views_of_a_sentence():
    page = PAGES.of_text(SENTENCE, "--special")
    chosen = "heads=L5H0&word=q8&key=6"
    pages = {
        "lines": (page, "heads=L5H0"), "word": (page, chosen), "heads": (page, "heads=L5H0.L5H3.L5H7"),
        "model": (page, f"view=model&{chosen}"), "matrix": (page, f"view=matrix&{chosen}"),
        "made-step-3": (page, chosen), "made-step-6": (page, chosen),
    }  # fmt: skip
    keep(pages, ["light", "dark", "narrow"])
    keep({"made-step-6": (page, chosen)}, ["narrow-dark"])
    print(f"# pictures: {os.path.relpath(PICTURES)}", flush=True)


def words_of_all_writings():
    right, labels = PAGES.of_map(RIGHT_TO_LEFT), PAGES.of_map(HOSTILE)
    pages = {
        "right-to-left": (right, "word=q3"), "right-to-left-matrix": (right, "view=matrix&word=q3&key=1"),
        "labels": (labels, "word=q0"), "labels-matrix": (labels, "view=matrix&word=q0&key=8"),
    }  # fmt: skip
    keep(pages, ["light", "dark"])
    keep({"right-to-left": (right, "word=q3"), "labels": (labels, "word=q0")}, ["narrow"])


def many_words_and_heads():
    page = PAGES.of_map([f"word{i}" for i in range(512)], layers=12, heads=12, means=True, sharpness=12)
    pages = {"long-lines": (page, "word=q100"), "long-model": (page, "view=model"),
             "long-matrix": (page, "view=matrix&word=q100&key=90")}  # fmt: skip
    keep(pages, ["light", "dark", "narrow"])


def two_maps():
    keep({"two-maps": (PAGES.joined(PAGES.of_map(["a", "b", "c"]), PAGES.of_map(["x", "y"])), "")}, ["light"])


run(READER, [the_views_of_a_sentence, words_of_all_writings, many_words_and_heads, two_maps])
