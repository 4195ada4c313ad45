"""From a tokenizer's tokens to words."""
from typing import Any

import numpy
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from attn.notebook.words import Words, encode, merge_pieces, read_words  # noqa: E402
from look_models import LetterByLetter, byte_pair, sentence_piece, word_piece  # noqa: E402


def words_of(tokenizer: Any, text: str, pair: str | None = None, pieces: bool = False) -> Words:
    return read_words(tokenizer, encode(tokenizer, text, pair), text, pair, pieces)


def test_pieces_become_words_as_the_text_writes_them() -> None:
    words = words_of(word_piece(), "The SCREWDRIVER was héavy.")
    assert words.labels == ["[CLS]", "The", "SCREWDRIVER", "was", "héavy", ".", "[SEP]"]
    assert words.is_special == [True, False, False, False, False, False, True]
    assert words.first_token == [0, 1, 2, 4, 5, 6, 7] and words.token_counts == [1, 1, 2, 1, 1, 1, 1]
    assert words.token_labels == ["[CLS]", "The", "SCREW", "DRIVER", "was", "héavy", ".", "[SEP]"]


def test_no_text_is_cut_or_padded() -> None:
    assert len(words_of(word_piece(), "it " * 20).labels) == 22


def test_pieces_are_called_as_the_vocabulary_calls_them() -> None:
    words = words_of(word_piece(), "The screwdriver", pieces=True)
    assert words.labels == ["[CLS]", "the", "screw", "##driver", "[SEP]"]
    assert words.token_counts == [1] * 5


def test_a_pair_stands_behind_its_text() -> None:
    words = words_of(word_piece(), "it was", "was it")
    assert words.labels == ["[CLS]", "it", "was", "[SEP]", "was", "it", "[SEP]"]
    assert words.is_special == [True, False, False, True, False, False, True]


def test_the_same_word_of_text_and_pair_is_two() -> None:
    # Without a token between them, and both their texts' word 0.
    words = words_of(byte_pair(), "a", "a")
    assert words.labels == ["a", "a"] and words.token_counts == [1, 1]


def test_a_special_token_in_the_text_is_a_word_of_it() -> None:
    words = words_of(word_piece(), "it [MASK] heavy")
    assert words.labels[2] == "[MASK]" and not words.is_special[2]


def test_bytes_of_one_character_are_one_word() -> None:
    words = words_of(byte_pair(), "the robot 😀😀\n")
    assert words.labels == ["the", "robot", "😀😀", "\n"]
    assert words.token_counts == [3, 1, 9, 1]
    assert words.token_labels[4:9] == [" ", "😀", "😀", "😀", "😀"]


def test_blanks_stay_together() -> None:
    words = words_of(byte_pair(), "a   b")
    assert words.labels == ["a", "  ", "b"] and words.token_counts == [1, 2, 2]


def test_a_part_of_a_character_is_spelled_as_the_vocabulary_does() -> None:
    words = words_of(byte_pair(), "é the robot", pieces=True)
    assert words.labels[:3] == ["Ã", "©", " "] and words.labels[-1] == " robot"


def test_spaces_part_words_where_there_is_no_pre_tokenizer() -> None:
    words = words_of(sentence_piece(), "ab cd\nab")
    assert words.labels == ["<s>", "ab", "cd", "\nab"]
    assert words.token_counts == [1, 3, 3, 3]


def test_a_tokenizer_that_tells_no_places_shows_tokens() -> None:
    words = words_of(LetterByLetter(), "ab 😀")
    assert words.labels == ["<s>", "a", "b", " ", "😀"] and words.token_counts == [1] * 5
    assert words.is_special == [True, False, False, False, False]


def test_right_to_left_words_keep_their_order() -> None:
    assert words_of(word_piece(), "שלום robot").labels[1:3] == ["שלום", "robot"]


def test_keys_are_added_and_queries_averaged() -> None:
    weights = numpy.random.default_rng(2017).random((2, 3, 5, 5), numpy.float32)
    words = Words(["a", "b", "c"], [False] * 3, [0, 2, 3], [2, 1, 2], [])
    merged = merge_pieces(weights, words)
    assert merged.shape == (2, 3, 3, 3) and merged.dtype == numpy.float32
    tokens = ((0, 1), (2,), (3, 4))
    for row, queries in enumerate(tokens):
        for column, keys in enumerate(tokens):
            wanted = sum(weights[:, :, i, j].astype(float) for i in queries for j in keys) / len(queries)
            assert numpy.abs(merged[:, :, row, column] - wanted).max() <= 1e-6
