"""Which word looks at which: the page of `attn look` for a model of Transformers, in a notebook.

    import attn, attn.transformers
    attn.transformers.register()
    model = AutoModel.from_pretrained(name, attn_implementation="attn")
    attn.look(model, AutoTokenizer.from_pretrained(name), "The robot fell because it was heavy.")
"""
import functools
import html
import os
import secrets
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from attn.page.data import MEAN, PageMap
from attn.page.file import make_page
from attn.notebook.heads import Heads, check_model, read_heads
from attn.page.vectors import Vectors
from attn.notebook.words import Words, encode, merge_pieces, read_words

__all__ = ["Look", "look"]

_ROW_LIMIT = 360_000  # of all matrices in a page, whose rows have a little less than 7 bytes each where there are many
_FRAME_HEIGHT = 760  # pixels


class Look:
    """Which word looks at which. A notebook shows it as a page; save() writes that page.

    words    the text's words, in their order, as it writes them
    weights  [layers, heads, words, words] float32: row i is what word i looks at, column j what word j gets. Keys of a
             word's pieces are added, its queries averaged. Without the tokens that the tokenizer adds, rows sum to
             less than 1. Read-only
    """

    def __init__(self, page_map: PageMap, weights: NDArray[numpy.float32], special: bool) -> None:
        """`weights` of all words; page_map's are of them and of means."""
        kept = [place for place, is_special in enumerate(page_map.is_special) if special or not is_special]
        self.words = [page_map.words[place] for place in kept]
        self.weights = _keep(weights, kept)
        self.weights.flags.writeable = False  # the page is made of the same numbers, later
        self._page_map = page_map

    @functools.cached_property
    def page(self) -> str:
        """The page: HTML without anything beside it, of less than 3 MB."""
        return make_page(self._page_map)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page. The file is there whole or, where that fails (OSError), as it was before."""
        target = Path(path)
        staged = target.with_name(f".attn-{secrets.token_hex(8)}")  # names may be as long as they can
        try:
            with open(staged, "x", encoding="utf-8", newline="\n") as file:
                file.write(self.page)
                file.flush()
                os.fsync(file.fileno())
            os.replace(staged, target)
        except BaseException:
            staged.unlink(missing_ok=True)
            raise

    def _repr_html_(self) -> str:
        # A frame of its own keeps the page's styles and scripts from the notebook, and the notebook's from the page.
        return (f'<iframe title="Attention" sandbox="allow-scripts" srcdoc="{html.escape(self.page)}" '
                f'style="width: 100%; height: {_FRAME_HEIGHT}px; border: 0"></iframe>')

    def __repr__(self) -> str:
        layers, heads = self.weights.shape[:2]
        return f"<attn.Look at {len(self.words)} words: {layers} layers of {heads} heads; save(path) writes a page>"


def _keep(weights: NDArray[numpy.float32], kept: list[int]) -> NDArray[numpy.float32]:
    """Rows and columns of those words; without a copy where they are neighbours."""
    if kept[-1] - kept[0] + 1 == len(kept):
        return weights[:, :, kept[0] : kept[-1] + 1, kept[0] : kept[-1] + 1]
    return weights[:, :, kept][:, :, :, kept]


def _check_texts(text: str, pair: str | None) -> None:
    for name, value in (("text", text), ("pair", pair)):
        if not isinstance(value, str) and (name == "text" or value is not None):
            raise TypeError(f"{name} is {type(value).__name__}; it must be str{'' if name == 'text' else ' or None'}")
        half = next((letter for letter in value or "" if "\ud800" <= letter <= "\udfff"), None)
        if half is not None:
            raise ValueError(f"{name} has {half!r}, half of a character; it must be text that UTF-8 can hold")


def _check_length(model: Any, tokens: int, words: Words) -> None:
    if all(words.is_special):
        raise ValueError("text has no words; it must have at least one")
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if isinstance(positions, int) and 0 < positions < tokens:
        raise ValueError(f"text has {tokens} tokens; the model has {positions} positions: shorten it")


def _vectors(heads: Heads, words: Words) -> Vectors | None:
    seen = heads.vectors
    if seen is None:
        return None
    return Vectors(seen.queries, seen.keys, seen.values, seen.scale, heads.is_causal, words.token_labels,
                   words.first_token, words.token_counts)


def _panels(weights: NDArray[numpy.float32]) -> dict[tuple[int, int], NDArray[numpy.float32]]:
    """The matrices of a page: the mean of all heads, those of layers, and all heads; of a long text the means."""
    layers, heads, words, _ = weights.shape
    most = _ROW_LIMIT // words
    means = [layer.mean(axis=0, dtype=numpy.float64) for layer in weights]
    panels = {(MEAN, MEAN): (sum(means) / layers).astype(numpy.float32)}
    if len(panels) + layers <= most:
        panels |= {(layer, MEAN): mean.astype(numpy.float32) for layer, mean in enumerate(means)}
    if len(panels) + layers * heads <= most:
        panels |= {(layer, head): weights[layer, head] for layer in range(layers) for head in range(heads)}
    return panels


def _model_name(model: Any) -> str:
    """The last part of a folder's path; a hub's name whole; of a model that has none its kind."""
    name = str(getattr(model, "name_or_path", ""))
    if os.path.isdir(name):
        return Path(name).resolve().name
    return name or str(model.config.model_type)


def look(
    model: Any,
    tokenizer: Any,
    text: str,
    *,
    pair: str | None = None,
    special: bool = False,
    pieces: bool = False,
) -> Look:
    """Runs the model over a text and shows which word looks at which, in every head.

    model      of Transformers, an encoder or a decoder (BERT, GPT-2, Llama …) on the implementation "attn"; it is read
               without gradient and dropout, and left as it was
    tokenizer  the model's. One that does not tell where its tokens stand shows each token as a word
    text       one text, of at least one word and at most as many tokens as the model has positions
    pair       a second text, which the tokenizer puts behind the first
    special    words and weights have the tokens that the tokenizer adds ([CLS], [SEP]) too. The page always has them,
               and hides them until they are asked for
    pieces     each token is a word

    The page has, for a word in one head, the numbers that its weights are made of, where these are nothing but the
    softmax of scaled products of queries and keys, and where they are few enough. A page that would be larger than
    3 MB keeps the strongest links of each word, that of a very long text only the means of layers.

    Returns a Look.

    TypeError: an argument is of another type. ValueError: the model is on another implementation, or has both encoder
    and decoder; the text has no words, or too many.
    """
    check_model(model)
    if not callable(tokenizer) or not hasattr(tokenizer, "convert_ids_to_tokens"):
        raise TypeError(f"tokenizer is {type(tokenizer).__name__}; it must be the model's, as "
                        "AutoTokenizer.from_pretrained gives it")
    _check_texts(text, pair)
    encoding = encode(tokenizer, text, pair)
    words = read_words(tokenizer, encoding, text, pair, pieces)
    tokens = len(encoding["input_ids"])
    _check_length(model, tokens, words)
    inputs = {name: encoding[name] for name in tokenizer.model_input_names if name in encoding}
    heads = read_heads(model, inputs, tokens)
    weights = numpy.stack([merge_pieces(layer, words) for layer in heads.weights])
    panels = _panels(weights)
    page_map = PageMap(_model_name(model), text, pair, words.labels, words.is_special, list(panels),
                       list(panels.values()), _vectors(heads, words), heads.vectors_left_out)
    return Look(page_map, weights, special)
