"""From a text to what a reader sees of it, in a page's data: as the tool's pages show it (src/draw/label.h)."""
import json
import unicodedata
from collections.abc import Iterable

__all__ = ["json_label", "json_labels", "show"]

_FIRST_CONTROL_PICTURE = 0x2400
_DELETE_PICTURE = 0x2421


def _is_control(code: int) -> bool:
    return code < 0x20 or code == 0x7F


def _must_be_spelled(code: int) -> bool:
    """What eyes or documents cannot take: C1 controls, line separators, what steers the direction of the text around
    it, noncharacters, halves of surrogate pairs."""
    return (
        0x80 <= code < 0xA0
        or code in (0x2028, 0x2029)
        or 0x202A <= code <= 0x202E
        or 0x2066 <= code <= 0x2069
        or 0xFDD0 <= code <= 0xFDEF
        or code & 0xFFFE == 0xFFFE
        or 0xD800 <= code <= 0xDFFF
    )


def _is_blank(letter: str) -> bool:
    """Leaves no ink on its own."""
    code = ord(letter)
    if _is_control(code) or _must_be_spelled(code):
        return False
    return unicodedata.category(letter) in ("Zs", "Cf") or 0xFE00 <= code <= 0xFE0F


def _spell(code: int) -> str:
    return f"\\u{{{code:X}}}" if code > 0xFFFF else f"\\u{code:04X}"


def _show_letter(letter: str, blank: bool) -> str:
    code = ord(letter)
    if letter == "\n":
        return "↵"
    if letter == "\t":
        return "⇥"
    if _is_control(code):
        return chr(_DELETE_PICTURE if code == 0x7F else _FIRST_CONTROL_PICTURE + code)
    if blank and letter == " ":
        return "␣"
    if blank or _must_be_spelled(code):
        return _spell(code)
    return letter


def show(label: str) -> str:
    """The label as visible text: line ends and tabs ↵ ⇥, other control characters by their pictures, what cannot be
    seen spelled \\u202E, a label of blanks ␣, an empty one ∅. All else stays as it is."""
    if not label:
        return "∅"
    blank = all(map(_is_blank, label))
    return "".join(_show_letter(letter, blank) for letter in label)


def json_label(label: str | None) -> str:
    """A JSON string that may stand inside a script element: nothing in it ends one."""
    if label is None:
        return "null"
    text = json.dumps(show(label), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def json_labels(labels: Iterable[str]) -> str:
    return f"[{', '.join(map(json_label, labels))}]"
