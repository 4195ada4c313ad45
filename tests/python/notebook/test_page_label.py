"""What a page writes in place of a text; the pairs are those of tests/draw/label_test.c."""
import json

import pytest

from attn.page.label import json_label, json_labels, show


@pytest.mark.parametrize("label", ["screwdriver", " ok", "a<b<c", '"', "<!--", "مرحبا", "你好", "e\u0301", "a  b",
                                   "👨\u200d👩\u200d👧"])
def test_letters_stay_as_they_are(label: str) -> None:
    assert show(label) == label


@pytest.mark.parametrize(("label", "shown"), [
    ("\n", "↵"), ("\t", "⇥"), ("\v", "␋"), ("a\rb\x1b[31m\x7f", "a␍b␛[31m␡"), ("a\0b", "a␀b"),
    ("", "∅"), (" ", "␣"), ("  ", "␣␣"), ("\u00a0", "\\u00A0"), (" \u200b", "␣\\u200B"), ("\ufeff", "\\uFEFF"),
    ("\ud800", "\\uD800"), ("a\u0085b", "a\\u0085b"), ("a\u202eb", "a\\u202Eb"), ("a\u2066b", "a\\u2066b"),
    ("a\u2028b", "a\\u2028b"), ("\ufdd0", "\\uFDD0"), ("a\U0001ffffb", "a\\u{1FFFF}b"),
])  # fmt: skip
def test_what_eyes_cannot_take_is_spelled(label: str, shown: str) -> None:
    assert show(label) == shown


@pytest.mark.parametrize("label", ["</script><script>alert(1)</script>", "<!--", "&amp;", '"\\', "\u2029", "]]>"])
def test_nothing_in_json_ends_a_script(label: str) -> None:
    text = json_label(label)
    assert not set("<>&") & set(text)
    assert json.loads(text) == show(label)


def test_a_list_of_labels() -> None:
    assert json.loads(json_labels(["a", '"', ""])) == ["a", '"', "∅"]
    assert json_label(None) == "null"
