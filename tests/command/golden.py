"""What PyTorch computed with the default model: tests/data/golden, made by scripts/golden_bert.py."""
import array
import json
import sys

from tool import ROOT

_FOLDER = ROOT / "tests" / "data" / "golden"
_FLOATS = array.array("f")
_FLOATS.frombytes((_FOLDER / "bert.bin").read_bytes())
if sys.byteorder == "big":
    _FLOATS.byteswap()

CONTENT = json.loads((_FOLDER / "bert.json").read_text())
TEXTS = CONTENT["texts"]


def is_cut(text):
    """The reference cut it to the model's positions; only [SEP] behind the cut was kept."""
    return len(text["ids"]) == 512


def floats(begin, count):
    return list(_FLOATS[begin:begin + count])
