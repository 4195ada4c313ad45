"""The data of pages, read back as their scripts read it and held against loops over single numbers."""
import math
from typing import Any

import numpy
import pytest

from attn.page.data import MEAN, PageMap, page_data
from attn.page.file import PAGE_LIMIT, make_page
from attn.page.vectors import Vectors
from attn.page.weights import find_links
from page_reader import data_of, links_of, vectors_of

GENERATOR = numpy.random.default_rng(2017)
ROOM = 10**9


def softmax_rows(panels: int, words: int, strength: float = 3.0) -> Any:
    scores = GENERATOR.standard_normal((panels, words, words)) * strength
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(numpy.float32)


def page_of(weights: Any, vectors: Vectors | None = None, **more: Any) -> PageMap:
    words = [f"word{i}" for i in range(weights.shape[-1])]
    given: dict[str, Any] = {
        "model": "a model", "text": " ".join(words), "pair": None, "words": words, "is_special": [False] * len(words),
        "panels": [(layer, MEAN) for layer in range(len(weights))], "weights": weights, "vectors": vectors,
        "vectors_left_out": False,
    }  # fmt: skip
    return PageMap(**given | more)


def read(page: PageMap, budget: int = ROOM) -> dict[str, Any]:
    text = page_data(page, budget)
    assert len(text.encode()) <= budget
    return data_of(f'class="attention-map-data">{text}</script>')


def vectors_for(words: int, layers: int = 2, heads: int = 4, key_heads: int = 2, d: int = 8) -> Vectors:
    def numbers(count: int) -> Any:
        return GENERATOR.standard_normal((layers, count, words, d)).astype(numpy.float32)

    return Vectors(numbers(heads), numbers(key_heads), numbers(key_heads), d**-0.5, True,
                   [f"token{i}" for i in range(words)], range(words), [1] * words)


def strongest_by_hand(row: Any, most: int) -> list[tuple[int, float]]:
    """Those that hold 70 % of the sum of its positive numbers, what is none before all."""
    numbers = [float(weight) for weight in row]
    mass = sum(weight for weight in numbers if math.isfinite(weight) and weight > 0)
    order = sorted((column for column, weight in enumerate(numbers) if not math.isfinite(weight) or weight > 0),
                   key=lambda column: (-numbers[column] if math.isfinite(numbers[column]) else -math.inf, column))
    links, held = [], 0.0
    for column in order[:most]:
        if math.isfinite(numbers[column]) and held >= 0.7 * mass:
            break
        links.append((column, numbers[column]))
        held += numbers[column] if math.isfinite(numbers[column]) else 0
    return links


def test_all_weights_come_back() -> None:
    weights = softmax_rows(3, 7)
    data = read(page_of(weights))
    largest = float(weights.max())
    assert data["strongest"] == 0 and data["share"] == 1 and numpy.float32(data["largest"]) == weights.max()
    for panel, rows in zip(weights, links_of(data)):
        for row, links in zip(panel, rows):
            for column, weight in links:
                assert abs(weight - row[column]) <= largest / 65534


def test_names_and_places() -> None:
    page = page_of(softmax_rows(2, 3), panels=[(MEAN, MEAN), (4, 7)], words=["[CLS]", "</script>", "\n"],
                   is_special=[True, False, False], pair="a & b")
    data = read(page)
    assert data["rows"] == ["[CLS]", "</script>", "↵"] and data["columns"] is None
    assert data["rowSpecial"] == data["columnSpecial"] == [0]
    assert data["panels"] == [{"layer": -1, "head": -1}, {"layer": 4, "head": 7}]
    assert (data["model"], data["pair"], data["measure"]) == ("a model", "a & b", None)
    assert data["vectors"] is None and data["vectorsLeftOut"] is False


def test_colors_go_one_way_from_the_ground_to_its_contrast() -> None:
    def luminance(color: str) -> float:
        parts = [int(color[place : place + 2], 16) / 255 for place in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    data = read(page_of(softmax_rows(1, 2)))
    light, dark = ([luminance(data[scale][at : at + 6]) for at in range(0, 256 * 6, 6)] for scale in ("light", "dark"))
    assert len(data["light"]) == len(data["dark"]) == 257 * 6
    assert light[0] > 0.85 and light[-1] < 0.05 and all(b < a + 0.002 for a, b in zip(light, light[1:]))
    assert dark[0] < 0.03 and dark[-1] > 0.7 and all(b > a - 0.002 for a, b in zip(dark, dark[1:]))


def test_a_smaller_page_keeps_the_strongest_links() -> None:
    weights = softmax_rows(4, 60, strength=1.0)
    page = page_of(weights)
    budget = 20_000
    data = read(page, budget)
    most = data["strongest"]
    assert 1 < most < 20
    held = 0.0
    for panel, rows in zip(weights, links_of(data)):
        for row, links in zip(panel, rows):
            wanted = strongest_by_hand(row, most)
            assert [column for column, _ in links] == [column for column, _ in wanted]
            for (_, weight), (_, right) in zip(links, wanted):
                assert abs(weight - right) <= float(weights.max()) / 65534
            held += sum(right for _, right in wanted)
    assert abs(data["share"] - held / (4 * 60)) <= 1e-5
    # One link a row more would not have fitted.
    links = find_links(weights)
    assert len(page_data(page, budget)) - links.size(most) + links.size(most + 1) > budget - 256


def test_what_is_not_a_number_goes_first_and_counts_nothing() -> None:
    weights = softmax_rows(1, 5)
    weights[0, 0] = [0.1, math.nan, 0.5, -1.0, math.inf]  # 0.5 is more than 70 % of the sum
    weights[0, 1] = [0.25, 0.25, 0.25, 0.25, 0.0]
    weights[0, 2] = 0
    data = read(page_of(weights))
    assert data["hasNotANumber"] is True
    row = [weight for _, weight in links_of(data)[0][0]]
    assert math.isnan(row[1]) and math.isnan(row[4]) and row[3] == 0
    links = find_links(weights)
    chosen = [links.columns[row, : links.counts[row]].tolist() for row in range(3)]
    assert chosen == [[1, 4, 2], [0, 1, 2], []]


def test_nothing_to_see() -> None:
    data = read(page_of(numpy.zeros((1, 2, 2), numpy.float32)))
    assert data["largest"] == 1 and data["hasNotANumber"] is False
    assert links_of(data)[0] == [[(0, 0.0), (1, 0.0)]] * 2


def test_vectors_come_back() -> None:
    vectors = vectors_for(5)
    data = read(page_of(softmax_rows(2, 5), vectors))
    held = data["vectors"]
    assert [held[name] for name in ("layers", "heads", "keyHeads", "d", "causal")] == [2, 4, 2, 8, True]
    assert numpy.float32(held["scale"]) == numpy.float32(8**-0.5)
    assert held["tokens"][4] == "token4" and held["rowTokens"] == [0, 1, 2, 3, 4] and held["rowTokenCounts"] == [1] * 5
    for kind, numbers in zip(("queries", "keys", "values"), vectors.kinds):
        read_back = numpy.array(vectors_of(data, kind)).reshape(numbers.shape)
        assert numpy.abs(read_back - numbers).max() <= numpy.abs(numbers).max() / 32767


def test_vectors_give_way_to_whole_weights() -> None:
    weights, vectors = softmax_rows(2, 30), vectors_for(30)
    alone, both = (len(page_data(page_of(weights, given), ROOM)) for given in (None, vectors))
    assert read(page_of(weights, vectors), both + 256)["vectors"] is not None
    data = read(page_of(weights, vectors), (alone + both) // 2)
    assert data["vectors"] is None and data["vectorsLeftOut"] is True and data["strongest"] == 0


def test_vectors_that_are_few_stand_beside_links() -> None:
    weights, vectors = softmax_rows(8, 100, strength=1.0), vectors_for(100, layers=1, heads=1, key_heads=1, d=2)
    data = read(page_of(weights, vectors), len(page_data(page_of(weights), ROOM)) - 50_000)
    assert data["vectors"] is not None and data["vectorsLeftOut"] is False and data["strongest"] > 1


def test_a_page_stays_below_its_limit() -> None:
    page = make_page(page_of(softmax_rows(16, 300), vectors_for(300, layers=6, d=64)))
    assert len(page.encode()) < PAGE_LIMIT
    data = data_of(page)
    assert data["strongest"] > 1 and data["vectorsLeftOut"] is True
    assert all(links for rows in links_of(data) for links in rows)


def test_a_text_too_long_for_a_page_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^text: its page would have about .* MB even with one link a word"):
        page_data(page_of(softmax_rows(10, 100)), 6000)


def test_a_page_loads_nothing_and_asks_for_nothing() -> None:
    page = make_page(page_of(softmax_rows(1, 2), model='<b title="x">'))
    assert "{{" not in page
    assert "<title>Attention in &lt;b title=&quot;x&quot;&gt;</title>" in page
    assert "default-src 'none'" in page and "connect-src" not in page and "data-ask" not in page.split("<script")[0]
    for address in ("http:", "https:", "//"):
        assert f'src="{address}' not in page and f'href="{address}' not in page
    assert page.count("<script") == 2 and page.count("</script>") == 2
    # The styles and the script are there, the one that asks for a text is not.
    assert ".attention-map" in page and "class AttentionPage" in page and "class AskForm" not in page


def test_a_text_that_looks_like_a_place_stays_what_it_is() -> None:
    page = make_page(page_of(softmax_rows(1, 2), model="{{data}}", text="{{script}} {{title}}"))
    assert data_of(page)["text"] == "{{script}} {{title}}" and data_of(page)["model"] == "{{data}}"
