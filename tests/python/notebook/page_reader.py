"""Reads pages as their scripts do (src/draw/page/data.js), one number at a time."""
import base64
import json
import math
import re
import struct
from typing import Any

DATA = re.compile(r'(?s)(class="attention-map-data">)(.*?)(</script>)')


def data_of(page: str) -> dict[str, Any]:
    found = DATA.findall(page)
    assert len(found) == 1
    return dict(json.loads(found[0][1]))


def frame_of(page: str) -> str:
    """All but the data."""
    return DATA.sub(r"\1\3", page)


def links_of(data: dict[str, Any]) -> list[list[list[tuple[int, float]]]]:
    """[panel][row]: (column, weight) of each link, in the page's order."""
    rows, panels = len(data["rows"]), len(data["panels"])
    packed = base64.b64decode(data["weights"], validate=True)
    at = 0

    def weight(code: int) -> float:
        return math.nan if code == 65535 else code / 65534 * data["largest"]

    def row() -> list[tuple[int, float]]:
        nonlocal at
        if data["strongest"] == 0:
            codes = struct.unpack_from(f"<{rows}H", packed, at)
            at += 2 * rows
            return [(column, weight(code)) for column, code in enumerate(codes)]
        count, at = packed[at], at + 1
        pairs = struct.unpack_from(f"<{2 * count}H", packed, at)
        at += 4 * count
        return [(pairs[2 * i], weight(pairs[2 * i + 1])) for i in range(count)]

    links = [[row() for _ in range(rows)] for _ in range(panels)]
    assert at == len(packed)
    return links


def vectors_of(data: dict[str, Any], kind: str) -> list[float]:
    packed = data["vectors"][kind]
    codes = base64.b64decode(packed["codes"], validate=True)
    return [math.nan if code == -32768 else code / 32767 * packed["largest"]
            for (code,) in struct.iter_unpack("<h", codes)]
