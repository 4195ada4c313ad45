"""The three views under pointer and keys: views_test.py ATTN DRAW_MAP PICTURES."""
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

from pages import Pages  # noqa: E402
from reader import Reader, run  # noqa: E402

PAGES = Pages(sys.argv[1], sys.argv[2])
READER = Reader()
WORDS = ["[BOS]", "the", "cat", "sat", "down"]


def rising(row):
    """Of a causal head: a key's weight rises with its place."""
    return [(column + 1) * (column <= row) / ((row + 1) * (row + 2) / 2) for column in range(len(WORDS))]


def before(row):
    """A head that looks at the word before."""
    return [float(column == max(0, row - 1)) for column in range(len(WORDS))]


def page():
    makers = [rising, before, before, rising]
    panels = [{"layer": i // 2, "head": i % 2, "weights": [weight for row in range(len(WORDS)) for weight in makers[i](row)]}
              for i in range(4)]  # fmt: skip
    return PAGES.of_map(WORDS, panels=panels, row_special=[0], column_special=[0])


def show(fragment="#"):
    """The page with the tokens that the model adds."""
    READER.show(page(), f"{fragment}&show=special")
    return READER.browser


def cell():
    """The weight and the words of the read-out."""
    return " ".join(READER.text(".read-weight").split())


def near(found, expected):
    assert found.keys() == expected.keys(), (found, expected)
    assert all(abs(found[word] - weight) <= 0.00051 for word, weight in expected.items()), (found, expected)


def tabs_follow_clicks_and_arrow_keys():
    browser = show()
    assert READER.view() == "head"
    browser.click(READER.tab("matrix"))
    assert READER.view() == "matrix" and READER.fragment()["view"] == "matrix"
    browser.press("ArrowLeft")
    assert READER.view() == "model" and browser.text(browser.active()) == "Model"
    browser.press("Home")
    assert READER.view() == "head"
    browser.press("ArrowLeft")
    assert READER.view() == "matrix"
    browser.press("Tab")
    assert browser.role(browser.active()) != "tab"  # the list of tabs is one stop
    assert browser.console() == []


def a_word_under_the_pointer_has_its_lines_alone():
    browser = show()
    everything = READER.ink("canvas.lines")
    browser.hover(READER.query(3))
    assert set(READER.linked()) == {"[BOS]", "the", "cat", "sat"}
    assert 0 < READER.ink("canvas.lines") < everything
    near(READER.ranking(), {"cat": 0.3, "the": 0.2, "[BOS]": 0.1, "sat": 0.4})
    assert READER.text(".read-word") == "sat looks at"
    browser.hover(READER.key(3))
    assert READER.text(".read-word") == "sat is looked at by"
    near(READER.ranking(), {"sat": 0.4, "down": 4 / 15})
    browser.leave()
    assert READER.linked() == [] and READER.ink("canvas.lines") == everything


def a_click_locks_a_word_and_another_unlocks_it():
    browser = show()
    for unlock in ("click", "Escape"):
        browser.click(READER.query(2))
        assert READER.fragment()["word"] == "q2"
        browser.hover(READER.query(4))
        assert READER.text(".read-word") == "cat looks at", unlock
        if unlock == "click":
            browser.click(READER.query(2))
        else:
            browser.press("Escape")
        assert "word" not in READER.fragment()
        browser.leave()
        assert READER.linked() == []
    browser.click(READER.key(1))
    assert READER.fragment()["word"] == "k1" and "sat" in READER.linked()


def heads_are_shown_together_and_alone():
    browser = show("#word=q3")
    names = ["layer 0 head 0", "layer 0 head 1", "layer 1 head 0", "layer 1 head 1"]
    assert READER.heads() == names[:1]
    browser.click(READER.head(names[1]))
    assert READER.heads() == names[:2] and READER.fragment()["heads"] == "L0H0.L0H1"
    near(READER.ranking(), {"cat": 0.65, "the": 0.1, "[BOS]": 0.05, "sat": 0.2})
    # Told apart by colour, each with its part of a bar.
    colors = browser.execute('return [...document.querySelectorAll(".ranking li:first-child i")].map((part) => part.style.background)')
    assert len(colors) == len(set(colors)) == 2, colors
    browser.double_click(READER.head(names[2]))
    assert READER.heads() == names[2:3]
    browser.double_click(READER.head(names[2]))
    assert READER.heads() == names[:2]
    browser.click(READER.find(".all-heads"))
    assert READER.heads() == names
    browser.click(READER.find(".all-heads"))
    assert len(READER.heads()) == 1
    assert browser.console() == []


def a_head_takes_the_place_of_its_layers_mean():
    READER.show(PAGES.of_map(WORDS, layers=6, heads=4, means=True), "#layer=2&heads=L2")
    browser = READER.browser
    assert READER.heads() == ["layer 2, mean of its heads"]
    browser.click(READER.head("layer 2 head 3"))
    assert READER.heads() == ["layer 2 head 3"]
    browser.click(READER.head("layer 2, mean of its heads"))
    assert set(READER.heads()) == {"layer 2 head 3", "layer 2, mean of its heads"}
    browser.click(READER.head("layer 2 head 1"))
    assert len(READER.heads()) == 3
    READER.show(PAGES.of_map(WORDS, layers=6, heads=4, means=True), "#layer=2&heads=L2")
    for heads in (["layer 2 head 3"], ["layer 2, mean of its heads"]):
        browser.double_click(READER.head("layer 2 head 3"))
        assert READER.heads() == heads
    assert browser.console() == []


def special_and_first_words_are_hidden_and_rows_renormalised():
    browser = READER.browser
    READER.show(page(), "#word=q3")
    assert READER.words() == READER.words("keys") == WORDS[1:]
    near(READER.ranking(), {"cat": 0.3, "the": 0.2, "sat": 0.4})
    assert READER.text(".notes") == ""
    browser.click(READER.find("[name=renormalize]"))
    near(READER.ranking(), {"cat": 3 / 9, "the": 2 / 9, "sat": 4 / 9})
    assert "divided" in READER.text(".notes")
    browser.click(READER.find("[name=hide-special]"))
    near(READER.ranking(), {"cat": 0.3, "the": 0.2, "[BOS]": 0.1, "sat": 0.4})
    browser.click(READER.find("[name=hide-first]"))
    assert READER.words() == WORDS[1:]
    for view, selector in (("matrix", ".cells"), ("model", ".picture canvas")):
        browser.click(READER.tab(view))
        READER.wait_until_drawn()
        assert len(READER.pixels(selector)) == len(WORDS) - 1, view


def weak_links_are_left_out():
    browser = show("#word=q3")
    strength = READER.find("[name=least]")
    browser.execute("arguments[0].focus()", strength)
    browser.press(*["ArrowRight"] * 50)  # a quarter of the largest
    assert set(READER.linked()) == {"cat", "sat"}, READER.fragment()
    near(READER.ranking(), {"cat": 0.3, "sat": 0.4})
    browser.press("End")
    assert READER.ranking() == {} and READER.linked() == []
    browser.press("Home")
    assert len(READER.ranking()) == 4
    browser.execute("arguments[0].focus()", READER.find("[name=links]"))
    browser.press("Home")
    assert READER.linked() == ["sat"] and READER.fragment()["links"] == "1"


def the_fragment_brings_back_the_view():
    given = "#view=matrix&heads=L1H1&word=q3&key=2&hide=first&renormalize=1&least=0.05&links=2"
    browser = show(given)
    for _ in range(2):
        assert READER.view() == "matrix" and READER.heads() == ["layer 1 head 1"]
        assert READER.text(".read-weight strong") == "0.333"
        assert browser.execute('return document.querySelector("[name=hide-first]").checked && document.querySelector("[name=renormalize]").checked')  # fmt: skip
        browser.click(READER.tab("head"))
        assert READER.linked() == ["cat", "sat"]
        browser.click(READER.tab("matrix"))
        browser.reload()
        READER.browser.wait_for('return document.querySelector(".attention-map[data-open]")')
    # What somebody writes into the address is followed without a reload.
    browser.execute('location.hash = "view=model"')
    browser.wait_for('return document.querySelector("[role=tab][data-view=model]").getAttribute("aria-selected") === "true"')
    for nonsense in ("#view=none&heads=L9H9.x&word=q99&least=-1&links=1e9&zoom=x", "#word=q&key=1&heads=..", "#%&=%ff&;"):
        show(nonsense)
        assert READER.view() == "head" and READER.heads() == ["layer 0 head 0"] and browser.console() == [], nonsense


def keys_walk_the_head_view():
    browser = show()
    browser.execute("arguments[0].focus()", READER.query(0))
    browser.press("ArrowDown", "ArrowDown", "ArrowDown")
    assert browser.text(browser.active()) == "sat" and READER.text(".read-word") == "sat looks at"
    browser.press("Enter")
    assert READER.fragment()["word"] == "q3"
    assert "cat" in READER.text(".status")  # said to who does not see it
    browser.press("ArrowRight")
    assert browser.execute("return document.activeElement.dataset.column") == "3"
    assert READER.text(".read-word") == "sat looks at"
    browser.press("Escape", "End")
    assert "word" not in READER.fragment()
    assert browser.text(browser.active()) == "down" and READER.text(".read-word") == "down is looked at by"
    browser.press("ArrowDown")
    assert browser.text(browser.active()) == "down"
    browser.press(" ")
    assert READER.fragment()["word"] == "k4"


def fingers_have_room():
    """Where the pointer is a finger, what is pressed is large enough for one."""
    browser = READER.browser
    browser.cdp("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=1)
    try:
        show("#heads=L0H0")
        sizes = browser.execute("""return [...document.querySelectorAll(".bar .button, .bar select, .head-toggle, .check")]
            .filter((item) => item.checkVisibility()).map((item) => item.getBoundingClientRect().height)""")
        assert len(sizes) >= 7 and min(sizes) >= 36, sizes
        for view in ("head", "model", "matrix"):
            browser.click(READER.tab(view))
            assert "tap" in READER.text(".read-out .hint"), view
    finally:
        browser.cdp("Emulation.setTouchEmulationEnabled", enabled=False)


def keys_and_clicks_open_heads_of_the_model_view():
    browser = show("#view=model")
    names = browser.execute('return [...document.querySelectorAll(".picture")].map((picture) => picture.getAttribute("aria-label"))')
    assert names == ["layer 0 head 0", "layer 0 head 1", "layer 1 head 0", "layer 1 head 1"]
    browser.execute("arguments[0].focus()", READER.find(".picture[tabindex='0']"))
    browser.press("ArrowDown", "ArrowRight", "ArrowRight")
    assert browser.name(browser.active()) == "layer 1 head 1"
    browser.press("Enter")
    assert READER.view() == "head" and READER.heads() == ["layer 1 head 1"]
    browser.click(READER.tab("matrix"))
    browser.click(READER.tab("model"))
    browser.click(READER.find('.picture[aria-label="layer 0 head 1"]'))
    assert READER.view() == "matrix" and READER.heads() == ["layer 0 head 1"]


def rows_are_queries():
    show("#view=matrix")
    light = READER.pixels(".cells")
    nothing = light[0][-1]
    for row, colors in enumerate(light):
        for column, color in enumerate(colors):
            assert (color == nothing) == (column > row), (row, column)
    # Down a column weights of a key fall: colours get nearer to that of nothing.
    browser = show("#view=model")
    READER.wait_until_drawn()
    small = READER.pixels('.picture[aria-label="layer 0 head 0"] canvas')
    assert small[0][-1] == nothing != small[-1][0]
    browser.prefer("dark")
    try:
        browser.click(READER.tab("matrix"))
        assert READER.pixels(".cells")[0][-1] != nothing
    finally:
        browser.prefer("light")


def pointer_and_keys_read_cells_of_the_matrix():
    browser = show("#view=matrix")
    field = READER.find(".field")
    size = browser.execute("return arguments[0].clientHeight / 5", field)
    browser.hover(field, x=round(-2 * size), y=round(2 * size))
    assert cell() == "0.067 down → [BOS]", cell()
    browser.click_at(field, x=0, y=round(size))
    assert cell() == "0.300 sat → cat" and READER.fragment()["key"] == "2"
    browser.leave()
    assert cell() == "0.300 sat → cat"
    browser.execute("arguments[0].focus()", field)
    browser.press("ArrowDown", "ArrowRight")
    assert cell() == "0.267 down → sat" and "0.267" in READER.text(".status")
    browser.press("Home", "ArrowLeft")
    assert cell() == "0.067 down → [BOS]"
    browser.press("PageDown")
    assert READER.heads() == ["layer 0 head 1"] and cell() == "0.000 down → [BOS]"
    browser.press("Escape")
    assert "word" not in READER.fragment() and browser.console() == []


run(
    READER,
    [
        tabs_follow_clicks_and_arrow_keys,
        a_word_under_the_pointer_has_its_lines_alone,
        a_click_locks_a_word_and_another_unlocks_it,
        heads_are_shown_together_and_alone,
        a_head_takes_the_place_of_its_layers_mean,
        special_and_first_words_are_hidden_and_rows_renormalised,
        weak_links_are_left_out,
        the_fragment_brings_back_the_view,
        keys_walk_the_head_view,
        fingers_have_room,
        keys_and_clicks_open_heads_of_the_model_view,
        rows_are_queries,
        pointer_and_keys_read_cells_of_the_matrix,
    ],
)
