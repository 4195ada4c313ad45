"""attn.look on models of Transformers: the weights are those of Transformers' own "eager"."""
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch  # noqa: E402
import transformers  # noqa: E402

import attn  # noqa: E402
import look_models  # noqa: E402
from page_reader import data_of, links_of, vectors_of  # noqa: E402

pytestmark = pytest.mark.usefixtures("registered")

TEXT = "The screwdriver was heavy."
MODELS = {"bert": look_models.word_piece, "gpt2": look_models.byte_pair, "llama": look_models.byte_pair,
          "gemma2": look_models.byte_pair}  # fmt: skip


def open_model(name: str) -> tuple[Any, Any]:
    tokenizer = MODELS[name]()
    make: Callable[[int], Any] = getattr(look_models, name)
    return make(len(tokenizer)), tokenizer


def eager_weights(model: Any, tokenizer: Any, text: str) -> Any:
    """[layers, heads, tokens, tokens], with special tokens."""
    model.set_attn_implementation("eager")
    encoding = tokenizer(text, truncation=False, padding=False)
    inputs = {name: torch.tensor([encoding[name]]) for name in tokenizer.model_input_names if name in encoding}
    with torch.no_grad():
        weights = torch.cat(model(**inputs, output_attentions=True).attentions).numpy()
    model.set_attn_implementation("attn")
    return weights


@pytest.mark.parametrize("name", MODELS)
def test_weights_are_those_of_eager(name: str) -> None:
    model, tokenizer = open_model(name)
    wanted = eager_weights(model, tokenizer, TEXT)
    look = attn.look(model, tokenizer, TEXT, special=True, pieces=True)
    assert look.weights.shape == wanted.shape and look.weights.dtype == numpy.float32
    assert numpy.abs(look.weights - wanted).max() <= 1e-5
    # A model that attends to all tokens alike would tell nothing.
    assert wanted.max() > 0.7


def test_pieces_and_special_tokens() -> None:
    model, tokenizer = open_model("bert")
    wanted = eager_weights(model, tokenizer, TEXT)
    look = attn.look(model, tokenizer, TEXT)
    assert look.words == ["The", "screwdriver", "was", "heavy", "."]
    assert abs(look.weights[1, 2, 0, 1] - (wanted[1, 2, 1, 2] + wanted[1, 2, 1, 3])) <= 1e-5
    assert abs(look.weights[0, 3, 1, 2] - (wanted[0, 3, 2, 4] + wanted[0, 3, 3, 4]) / 2) <= 1e-5
    whole = attn.look(model, tokenizer, TEXT, special=True)
    assert whole.words == ["[CLS]", *look.words, "[SEP]"]
    assert numpy.abs(whole.weights.sum(axis=-1) - 1).max() <= 1e-5
    assert (whole.weights[:, :, 1:-1, 1:-1] == look.weights).all()
    pair = attn.look(model, tokenizer, "it was", pair="heavy")
    assert pair.words == ["it", "was", "heavy"] and data_of(pair.page)["pair"] == "heavy"
    assert (pair.weights == attn.look(model, tokenizer, "it was", pair="heavy", special=True)
            .weights[:, :, [1, 2, 4]][:, :, :, [1, 2, 4]]).all()


def test_the_page_has_all_heads_and_their_means() -> None:
    model, tokenizer = open_model("bert")
    look = attn.look(model, tokenizer, TEXT, special=True)
    data = data_of(look.page)
    layers, heads = look.weights.shape[:2]
    assert data["rows"] == look.words and data["rowSpecial"] == [0, 6] and data["text"] == TEXT
    places = [(panel["layer"], panel["head"]) for panel in data["panels"]]
    assert places == [(-1, -1), *((layer, -1) for layer in range(layers)),
                      *((layer, head) for layer in range(layers) for head in range(heads))]
    for (layer, head), rows in zip(places, links_of(data)):
        chosen = look.weights[slice(None) if layer < 0 else layer, slice(None) if head < 0 else head]
        wanted = chosen.reshape(-1, *look.weights.shape[2:]).mean(axis=0)
        drawn = numpy.array([[weight for _, weight in row] for row in rows])
        assert numpy.abs(drawn - wanted).max() <= 1e-5, (layer, head)


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_the_page_tells_what_weights_are_made_of(name: str) -> None:
    model, tokenizer = open_model(name)
    look = attn.look(model, tokenizer, "The robot fell", special=True, pieces=True)
    data = data_of(look.page)
    held = data["vectors"]
    assert held["causal"] is (name != "bert") and held["keyHeads"] == (2 if name == "llama" else 4)
    assert held["tokens"][held["rowTokens"][-2]] == (look.words[-2].strip() if name != "bert" else "fell")
    tokens, d = len(held["tokens"]), held["d"]
    queries = numpy.array(vectors_of(data, "queries")).reshape(-1, held["heads"], tokens, d)
    keys = numpy.array(vectors_of(data, "keys")).reshape(-1, held["keyHeads"], tokens, d)
    for layer, head in ((0, 0), (1, 3)):
        scores = queries[layer, head] @ keys[layer, head * held["keyHeads"] // held["heads"]].T * held["scale"]
        if held["causal"]:
            scores += numpy.triu(numpy.full_like(scores, -numpy.inf), 1)
        made = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
        made /= made.sum(axis=-1, keepdims=True)
        assert numpy.abs(made - look.weights[layer, head]).max() <= 1e-2


def test_weights_that_are_more_than_products_have_no_vectors() -> None:
    model, tokenizer = open_model("gemma2")
    data = data_of(attn.look(model, tokenizer, "The robot fell").page)
    assert data["vectors"] is None and data["vectorsLeftOut"] is False


def test_vectors_that_no_page_holds_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = open_model("bert")
    monkeypatch.setattr("attn.notebook.heads.PAGE_LIMIT", 3000)  # bytes; as if the text were longer
    data = data_of(attn.look(model, tokenizer, TEXT).page)
    assert data["vectors"] is None and data["vectorsLeftOut"] is True


def test_the_model_is_left_as_it_was() -> None:
    model, tokenizer = open_model("bert")
    model.config.hidden_dropout_prob = model.config.attention_probs_dropout_prob = 0.5
    first = attn.look(model, tokenizer, TEXT).weights
    model.train()
    model.encoder.layer[1].eval()
    modes = [part.training for part in model.modules()]
    original = transformers.AttentionInterface()["attn"]
    look = attn.look(model, tokenizer, TEXT)
    assert (look.weights == first).all()  # no dropout
    assert [part.training for part in model.modules()] == modes
    assert transformers.AttentionInterface()["attn"] is original
    assert torch.is_grad_enabled() and all(parameter.grad is None for parameter in model.parameters())
    model(torch.tensor([[2, 7, 3]])).last_hidden_state.sum().backward()


def test_the_implementation_comes_back_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = open_model("bert")
    model.train()
    original = transformers.AttentionInterface()["attn"]

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("in the middle")

    monkeypatch.setattr(model.encoder.layer[1], "forward", fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        attn.look(model, tokenizer, TEXT)
    assert transformers.AttentionInterface()["attn"] is original and model.training


def test_threads_look_at_their_own_texts() -> None:
    model, tokenizer = open_model("bert")
    texts = ["it was heavy", "the robot picked up the screwdriver"] * 2
    alone = [attn.look(model, tokenizer, text).page for text in texts]
    found: list[str | None] = [None] * len(texts)

    def work(place: int) -> None:
        found[place] = attn.look(model, tokenizer, texts[place]).page

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == alone


def test_a_compiled_model_is_not_compiled_anew() -> None:
    model, tokenizer = open_model("bert")
    graphs: list[Any] = []

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(model, backend=backend)
    assert attn.look(compiled, tokenizer, TEXT).page == attn.look(model, tokenizer, TEXT).page
    assert graphs == []


def test_a_model_that_another_thread_uses_meanwhile_is_not_recorded() -> None:
    model, tokenizer = open_model("bert")
    other, _ = open_model("llama")
    page = attn.look(model, tokenizer, TEXT).page

    def use_other(*_: Any) -> None:
        thread = threading.Thread(target=other, args=(torch.tensor([[5, 6, 7]]),))
        thread.start()
        thread.join()

    model.encoder.layer[1].register_forward_pre_hook(use_other)
    assert attn.look(model, tokenizer, TEXT).page == page


def test_hostile_texts() -> None:
    model, tokenizer = open_model("gpt2")
    text = "</script>\"'&<!--\0 \u202eשלום 👨\u200d👩"
    look = attn.look(model, tokenizer, text)
    assert "".join(look.words).replace(" ", "") == text.replace(" ", "")
    assert look.page.count("</script") == 2
    data = data_of(look.page)
    assert data["text"] == text.replace("\0", "␀").replace("\u202e", "\\u202E")


@pytest.mark.parametrize(("limit", "panels"), [(7 * 11, 11), (7 * 11 - 1, 3), (7 * 3 - 1, 1)])
def test_a_long_text_has_the_means_of_layers(limit: int, panels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # What a page holds, as if it were less: seven words of two layers of four heads are too many.
    monkeypatch.setattr("attn.notebook._ROW_LIMIT", limit)
    data = data_of(attn.look(*open_model("bert"), TEXT).page)
    assert len(data["panels"]) == panels
    assert panels == 11 or all(panel["head"] == -1 for panel in data["panels"])


def test_a_tokenizer_without_places() -> None:
    tokenizer = look_models.LetterByLetter()
    look = attn.look(look_models.gpt2(len(tokenizer)), tokenizer, "what is it")
    assert "".join(look.words) == "what is it" and look.weights.shape[-1] == 10


def test_save_writes_the_page_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look = attn.look(*open_model("bert"), TEXT)
    path = tmp_path / "page.html"
    path.write_text("before")
    look.save(path)
    assert path.read_text(encoding="utf-8") == look.page
    look.save(str(path))
    longest = tmp_path / ("n" * 250 + ".html")  # 255 bytes, the most that file systems take
    look.save(longest)
    longest.unlink()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("no room")))
    with pytest.raises(OSError, match="no room"):
        look.save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(OSError):
        look.save(tmp_path / "nowhere" / "page.html")


def test_it_says_what_it_is_in_a_line() -> None:
    assert repr(attn.look(*open_model("bert"), TEXT)) == (
        "<attn.Look at 5 words: 2 layers of 4 heads; save(path) writes a page>")


def refused(error: type[Exception], message: str, *arguments: Any, **named: Any) -> None:
    with pytest.raises(error) as caught:
        attn.look(*arguments, **named)
    assert str(caught.value) == message


def test_refusals_name_the_argument() -> None:
    model, tokenizer = open_model("bert")
    refused(TypeError, "model is int; it must be a model of Transformers, as AutoModel.from_pretrained gives one",
            3, tokenizer, TEXT)
    refused(TypeError, "tokenizer is str; it must be the model's, as AutoTokenizer.from_pretrained gives it",
            model, "bert", TEXT)
    refused(TypeError, "text is list; it must be str", model, tokenizer, [TEXT])
    refused(TypeError, "pair is bytes; it must be str or None", model, tokenizer, TEXT, pair=b"it")
    refused(ValueError, "text has '\\ud83d', half of a character; it must be text that UTF-8 can hold",
            model, tokenizer, "a\ud83d")
    refused(ValueError, "text has no words; it must have at least one", model, tokenizer, " ")
    refused(ValueError, "text has 65 tokens; the model has 64 positions: shorten it", model, tokenizer, "it " * 63)
    refused(ValueError, "text has 4 tokens, and the model has no place for one of them: shorten it, or give the "
            "model's own tokenizer", look_models.bert(5), tokenizer, "it was")
    model.set_attn_implementation("eager")
    refused(ValueError, 'model is on the attention implementation "eager"; call attn.transformers.register(), then '
            'model.set_attn_implementation("attn")', model, tokenizer, TEXT)


def test_an_encoder_and_a_decoder_are_refused() -> None:
    config = transformers.BartConfig(vocab_size=50, d_model=16, encoder_layers=1, decoder_layers=1,
                                     encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=8,
                                     decoder_ffn_dim=8, attn_implementation="attn")
    refused(ValueError, "model is BartModel, an encoder and a decoder; look shows models of one of them",
            transformers.BartModel(config), look_models.word_piece(), TEXT)


def test_less_than_whole_weights_is_refused() -> None:
    model, tokenizer = open_model("bert")
    with attn.transformers.inspections(top=2):
        refused(ValueError, "model gives no weights [1, heads, 8, 8], of as many heads in each layer, for 8 tokens; "
                "look shows models that do, outside of attn.transformers.inspections()", model, tokenizer, TEXT)


def test_nothing_is_imported_before_it_is_needed() -> None:
    program = ("import sys, attn, attn.notebook; attn.look\n"
               "print([name for name in ('torch', 'transformers', 'IPython') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
