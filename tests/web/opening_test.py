"""Pages as a browser opens them: how soon, without the network, without an error, and what stands there.

    opening_test.py ATTN DRAW_MAP PICTURES
"""
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

from pages import HOSTILE, PAGE_LIMIT, RIGHT_TO_LEFT, SENTENCE, Pages, long_text  # noqa: E402
from reader import OPENED, Reader, run  # noqa: E402

PAGES = Pages(sys.argv[1], sys.argv[2])
READER = Reader()
OPEN_SECONDS = 3  # what no machine should need; the figure is printed
MANY_WORDS = [f"word{i}" for i in range(512)]

MOMENTS = 'return performance.getEntriesByName("attention-map-open").map((mark) => mark.startTime)'
WIDTHS = "return [document.documentElement.scrollWidth, innerWidth]"

def opens(address):
    """Milliseconds from the navigation to the first view; nothing but the file is asked for, nothing is said."""
    READER.show(address, "")
    moments = READER.browser.execute(MOMENTS)
    assert READER.browser.console() == []
    assert READER.browser.requests() == [address]
    assert moments and moments[0] < 1000 * OPEN_SECONDS, moments
    return moments[0]


def say(name, address):
    milliseconds = opens(address)
    size = PAGES.path(address).stat().st_size
    assert size < PAGE_LIMIT, size
    print(f"# {name}: {size / 1e6:.2f} MB, first view after {milliseconds:.0f} ms", flush=True)


def the_page_of_a_sentence_opens():
    READER.show(PAGES.of_map(["a", "b"]))  # a browser that has just started is slow once
    say("the sentence, all heads", PAGES.of_text())
    assert " ".join(READER.words()) == f"{SENTENCE[:-1]} .", READER.words()


def a_page_of_512_tokens_and_72_heads_opens():
    say("512 tokens, 72 heads", PAGES.of_text(long_text(510)))
    assert len(READER.words()) >= 510


def a_page_of_512_tokens_and_144_heads_opens():
    say("512 tokens, 144 heads and 13 means", PAGES.of_map(MANY_WORDS, layers=12, heads=12, means=True))
    assert READER.words() == READER.words("keys") == MANY_WORDS


def labels_are_shown_literally():
    browser = READER.browser
    opens(PAGES.of_map(HOSTILE))
    assert READER.words() == READER.words("keys"), READER.words()
    # Isolated from its neighbours, and with its own direction.
    for shown, given in zip(READER.words(), HOSTILE):
        assert shown == given or (given == "\u202eabc" and "abc" in shown), (shown, given)
    assert browser.execute("return document.images.length + document.scripts.length") == 2
    for view in ("model", "matrix"):
        READER.show(PAGES.of_map(HOSTILE), f"#view={view}&word=q0&key=8")
        assert browser.console() == []
    assert "a<b<c → <img src=x onerror=alert(1)>" in READER.text(".read-out")


def two_maps_in_one_document_are_apart():
    browser = READER.browser
    address = PAGES.joined(PAGES.of_map(["a", "b", "c"]), PAGES.of_map(["x", "y"]))
    opens(address)
    first, second = browser.find_all(".attention-map")
    names = 'return [...arguments[0].querySelectorAll(".queries bdi")].map((label) => label.textContent)'
    assert browser.execute(names, first) == ["a", "b", "c"] and browser.execute(names, second) == ["x", "y"]
    ids = browser.execute("return [...document.querySelectorAll('[id]')].map((element) => element.id)")
    assert len(ids) == len(set(ids)), ids
    # Each has its own view and word, and its own place in the fragment.
    tab = 'return arguments[0].querySelector("[role=tab][data-view=matrix]")'
    chosen = 'return arguments[0].querySelector("[role=tab][aria-selected=true]").dataset.view'
    browser.click(browser.execute(tab, second))
    assert browser.execute(chosen, first) == "head" and browser.execute(chosen, second) == "matrix"
    browser.click(browser.execute('return arguments[0].querySelector(".queries li")', first))
    fragment = READER.fragment()
    assert fragment == {"word": "q0", "2.view": "matrix"}, fragment
    browser.reload()
    browser.wait_for(OPENED)
    assert READER.fragment() == fragment
    first, second = browser.find_all(".attention-map")
    assert browser.execute(chosen, first) == "head" and browser.execute(chosen, second) == "matrix"
    locked = 'return arguments[0].querySelectorAll(".chosen").length'
    assert browser.execute(locked, first) == 1 and browser.execute(locked, second) == 0
    assert browser.console() == []


def needs_name(node):
    """What has the focus at times, and pictures."""
    can_have_focus = any(about["name"] == "focusable" and about["value"]["value"] for about in node.get("properties", []))
    return node["role"]["value"] in ("image", "img") or (can_have_focus and node["role"]["value"] != "RootWebArea")


def every_control_has_a_name():
    for view, one in (
        ("head", ("option", "screwdriver")), ("model", ("gridcell", "layer 4 head 7")), ("matrix", ("tab", "Matrix"))
    ):  # fmt: skip
        READER.show(PAGES.of_text(), f"#view={view}&heads=L5H0&word=q7&key=5")
        nodes = READER.browser.cdp("Accessibility.getFullAXTree")["nodes"]
        named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes
                 if not node["ignored"] and needs_name(node)]  # fmt: skip
        assert all(name.strip() for _, name in named), (view, named)
        assert one in named and {"checkbox", "slider", "button"} <= {role for role, _ in named}, (view, named)


def narrow_screens_do_not_scroll_sideways():
    browser = READER.browser
    try:
        for width in (320, 390, 768):
            browser.resize(width, 800)
            for view in ("head", "model", "matrix"):
                READER.show(PAGES.of_text(), f"#view={view}&heads=L5H0&word=q7&key=5")
                content, window = browser.execute(WIDTHS)
                assert content <= window, (width, view, content)
    finally:
        browser.resize(1280, 900)


def right_to_left_words_keep_their_order():
    READER.show(PAGES.of_map(RIGHT_TO_LEFT))
    assert READER.words() == RIGHT_TO_LEFT
    # Columns stay where they are: queries at the left.
    left, right = READER.browser.execute(
        'return [".queries", ".keys"].map((list) => document.querySelector(list).getBoundingClientRect().left)')
    assert left < right
    READER.show(PAGES.of_map(RIGHT_TO_LEFT), "#view=matrix&word=q3&key=1")
    query, key = READER.browser.execute(
        'return [...document.querySelectorAll(".read-weight bdi")].map((label) => label.getBoundingClientRect().left)')
    assert query < key and READER.text(".read-weight bdi") == RIGHT_TO_LEFT[3]


run(
    READER,
    [
        the_page_of_a_sentence_opens,
        a_page_of_512_tokens_and_72_heads_opens,
        a_page_of_512_tokens_and_144_heads_opens,
        labels_are_shown_literally,
        two_maps_in_one_document_are_apart,
        every_control_has_a_name,
        narrow_screens_do_not_scroll_sideways,
        right_to_left_words_keep_their_order,
    ],
)
