"""Which words a text has, and which of the model's tokens each is made of: the rows and columns of a page.

A word is what the tokenizer's pre-tokenizer splits. A token that the tokenizer adds ([CLS], [SEP]) is a word of its
own, and so is each token of a tokenizer that does not tell where its tokens stand (one written in Python).
"""
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

__all__ = ["Words", "encode", "merge_pieces", "read_words"]


@dataclass(frozen=True)
class Words:
    """Of one text, or of a text and its pair."""

    labels: list[str]  # as the text writes them; added tokens as the vocabulary does
    is_special: list[bool]  # tokens that the tokenizer adds
    first_token: list[int]  # the first token of each,
    token_counts: list[int]  # and how many it has, one behind the other
    token_labels: list[str]


@dataclass(frozen=True)
class _Token:
    identity: int
    text: int | None  # which text it stands in, 0 or the pair 1; None where that is not known
    word: int | None  # its place among the words of that text
    begin: int  # of its characters
    end: int
    is_special: bool


def encode(tokenizer: Any, text: str, pair: str | None) -> Any:
    """The tokenizer's own answer; with the places of tokens in the text, where it knows them."""
    more = {"return_offsets_mapping": True} if tokenizer.is_fast else {}
    return tokenizer(text, pair, truncation=False, padding=False, **more)


def _tokens(tokenizer: Any, encoding: Any) -> list[_Token]:
    identities = encoding["input_ids"]
    if not tokenizer.is_fast:
        added = tokenizer.get_special_tokens_mask(identities, already_has_special_tokens=True)
        return [_Token(identity, None, None, 0, 0, bool(is_added)) for identity, is_added in zip(identities, added)]
    places = zip(identities, encoding.sequence_ids(0), encoding.word_ids(0), encoding["offset_mapping"])
    return [_Token(identity, text, word, begin, end, text is None) for identity, text, word, (begin, end) in places]


def _stands_for(tokens: list[_Token], texts: tuple[str, str]) -> str:
    """Empty for what is not in a text."""
    return "" if tokens[0].text is None else texts[tokens[0].text][tokens[0].begin : tokens[-1].end]


def _continues(word: list[_Token], token: _Token, texts: tuple[str, str]) -> bool:
    if token.text is None or (token.text, token.word) != (word[0].text, word[0].word):
        return False
    # To a tokenizer without a pre-tokenizer (SentencePiece) the whole text is one word: spaces part those in it.
    return not (_stands_for(word, texts).strip() and _stands_for([token], texts)[:1].isspace())


def _split(tokens: list[_Token], texts: tuple[str, str], pieces: bool) -> list[list[_Token]]:
    words: list[list[_Token]] = []
    for token in tokens:
        if words and not pieces and _continues(words[-1], token, texts):
            words[-1].append(token)
        else:
            words.append([token])
    return words


def _vocabulary_label(tokenizer: Any, token: _Token) -> str:
    """Byte-level vocabularies spell bytes by letters that stand for them: decoded they can be read, but for a part of
    a character."""
    decoded: str = tokenizer.decode([token.identity])
    spelled: str = tokenizer.convert_ids_to_tokens(token.identity)
    return spelled if not decoded or "\ufffd" in decoded else decoded


def _label(tokenizer: Any, tokens: list[_Token], texts: tuple[str, str]) -> str:
    """Without the space before it, which byte-level vocabularies take for a part of the word."""
    text = _stands_for(tokens, texts)
    if not text:
        return _vocabulary_label(tokenizer, tokens[0])
    return text[1:] if len(text) > 1 and text[0] == " " and text[1] != " " else text


def read_words(tokenizer: Any, encoding: Any, text: str, pair: str | None, pieces: bool) -> Words:
    """Of what `encode` gave; with `pieces` each token is a word, and is called what the vocabulary calls it."""
    texts = (text, pair or "")
    tokens = _tokens(tokenizer, encoding)
    words = _split(tokens, texts, pieces)
    counts = [len(word) for word in words]
    return Words(
        labels=[_vocabulary_label(tokenizer, word[0]) if pieces else _label(tokenizer, word, texts) for word in words],
        is_special=[word[0].is_special for word in words],
        first_token=[sum(counts[:place]) for place in range(len(counts))],
        token_counts=counts,
        token_labels=[_label(tokenizer, [token], texts) for token in tokens],
    )


def merge_pieces(weights: NDArray[numpy.float32], words: Words) -> NDArray[numpy.float32]:
    """[.., tokens, tokens] becomes [.., words, words]: the keys of a word are added, its queries averaged, so that a
    row that summed to 1 still does."""
    keys = numpy.add.reduceat(weights, words.first_token, axis=-1)
    rows = numpy.add.reduceat(keys, words.first_token, axis=-2)
    rows /= numpy.asarray(words.token_counts, numpy.float32)[:, None]
    return rows
