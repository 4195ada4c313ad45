"""attn serve in a browser: a text is typed, and seen. serve_test.py ATTN DRAW_MAP PICTURES."""
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

sys.path.append(str(Path(__file__).resolve().parent))

from pages import SENTENCE, Pages  # noqa: E402
from reader import Reader, run  # noqa: E402

ATTN, PICTURES = sys.argv[1], Path(sys.argv[3])
READER = Reader()
CATS = ["Cats", "sleep", "."]
PAGES = Pages(ATTN, sys.argv[2])
SEEN = 'return document.querySelector(".attention-map").dataset.open !== undefined'
SAYS = "return document.querySelector(arguments[0]).textContent.includes(arguments[1])"


class Server:
    """Runs until the tests end; None stands for one that has not been started."""

    process = None

    def address(self):
        if not self.process:
            command = [ATTN, "serve", "-m", PAGES.model(), "--port", "0"]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self.url = self.process.stdout.readline().strip()
            assert self.url.startswith("http://127.0.0.1:"), self.url
        return self.url

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=10)
        finally:
            self.process.kill()
            self.process.stdout.close()
            self.process = None


SERVER = Server()


def open_form(fragment=""):
    browser = READER.browser
    browser.console()
    browser.requests()
    browser.open(SERVER.address() + fragment)
    return browser


def ask(text, *keys, **holding):
    field = READER.find("[name=text]")
    READER.browser.execute('arguments[0].value = ""', field)
    READER.browser.type(field, text)
    READER.browser.press(*keys, **holding)


def done(words):
    READER.browser.wait_for(SAYS, ".ask-status", f"{words} words")
    assert READER.text(".ask-error") == ""


def a_typed_text_is_seen():
    browser = open_form()
    assert browser.execute('return document.querySelector(".ask").checkVisibility()')
    assert not browser.execute('return document.querySelector(".page").checkVisibility()')
    assert "which word looks at which" in READER.text(".ask-about")
    assert browser.name(browser.active()) == "Text"  # may be typed into at once
    ask(SENTENCE, "Enter", holding=["Control"])
    done(11)
    assert " ".join(READER.words()) == f"{SENTENCE[:-1]} ."
    assert READER.fragment()["text"] == SENTENCE
    assert browser.execute("return document.title").endswith("all-MiniLM-L6-v2")
    assert all(address.startswith(SERVER.url) for address in browser.requests())
    assert browser.console() == []


def another_text_takes_its_place():
    browser = open_form()
    ask(SENTENCE, "Enter", holding=["Control"])
    done(11)
    browser.click(READER.query(10))
    ask("Cats sleep.")
    browser.click(READER.find(".ask button"))
    done(3)
    assert READER.words() == READER.words("keys") == CATS
    assert READER.fragment()["text"] == "Cats sleep." and browser.console() == []
    for view in ("model", "matrix", "head"):
        browser.click(READER.tab(view))
        assert READER.view() == view
    assert READER.words() == CATS and browser.console() == []


def the_strip_walks_a_typed_text():
    browser = open_form("#" + urlencode({"text": SENTENCE, "heads": "L5H0", "word": "q8"}))
    done(11)
    browser.click(READER.find(".made-steps li:last-child button"))
    assert "it in layer 5 head 0" in READER.text(".made") and "The model's own weight" in READER.text(".made-check")


def a_pair_and_a_measure_are_asked_for():
    browser = open_form()
    browser.click(READER.find("details summary"))
    browser.type(READER.find("[name=pair]"), "It was heavy.")
    browser.execute("arguments[0].focus()", READER.find("[name=measure]"))
    browser.press("ArrowDown")
    ask("The robot stopped.", "Enter", holding=["Control"])
    done(8)
    assert READER.words() == "The robot stopped . It was heavy .".split()
    assert "norm" in READER.text(".legend-title")
    assert READER.fragment()["pair"] == "It was heavy." and READER.fragment()["measure"] == "norm"
    browser.reload()
    browser.wait_for(SEEN)
    done(8)
    assert "norm" in READER.text(".legend-title") and browser.execute('return document.querySelector("details").open')
    assert browser.console() == []


def a_text_in_the_address_is_asked_for():
    browser = open_form("#" + urlencode({"text": "a<b<c & مرحبا", "view": "matrix"}))
    browser.wait_for(SEEN)
    assert READER.view() == "matrix"
    assert browser.execute('return document.querySelector("[name=text]").value') == "a<b<c & مرحبا"
    browser.execute("location.hash = arguments[0]", urlencode({"text": "Cats sleep."}))
    done(3)
    assert READER.view() == "head" and READER.words() == CATS
    assert browser.console() == []


def what_is_wrong_is_said():
    browser = open_form()
    ask(" ", "Enter", holding=["Control"])
    assert READER.text(".ask-error") == "Type a text first."
    assert browser.role(READER.find(".ask-error")) == "alert"
    browser.execute('document.querySelector("[name=text]").value = "word ".repeat(5000)')
    browser.click(READER.find(".ask button"))
    browser.wait_for('return document.querySelector(".ask-error").textContent !== ""')
    assert "512" in READER.text(".ask-error"), READER.text(".ask-error")
    assert READER.text(".ask-status") == "" and not browser.execute('return document.querySelector(".ask button").disabled')
    ask("Cats sleep.", "Enter", holding=["Control"])
    done(3)


def pictures_are_kept():
    PICTURES.mkdir(parents=True, exist_ok=True)
    browser = READER.browser
    try:
        for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390)):
            browser.prefer(scheme)
            browser.resize(width, 900)
            open_form("#" + urlencode({"text": SENTENCE, "heads": "L5H0.L5H3", "word": "q8"}))
            done(11)
            READER.wait_until_drawn()
            browser.screenshot(PICTURES / f"serve-{scheme}{'' if width == 1280 else '-narrow'}.png")
    finally:
        browser.prefer("light")
        browser.resize(1280, 900)


def a_server_that_is_gone_is_missed():
    browser = open_form()
    assert SERVER.end() == 0
    ask(SENTENCE, "Enter", holding=["Control"])
    browser.wait_for(SAYS, ".ask-error", "still running")


try:
    run(
        READER,
        [
            a_typed_text_is_seen,
            another_text_takes_its_place,
            the_strip_walks_a_typed_text,
            a_pair_and_a_measure_are_asked_for,
            a_text_in_the_address_is_asked_for,
            what_is_wrong_is_said,
            pictures_are_kept,
            a_server_that_is_gone_is_missed,
        ],
    )
finally:
    if SERVER.process:
        SERVER.end()
