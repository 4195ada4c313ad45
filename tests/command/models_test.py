"""Which model is opened, and what is said of one that cannot be."""
import json
import os

from tool import FOLDER, SENTENCE, attn, damaged_model, fails, model, succeeds, tap

ALL = ["look", "embed"]


def info(*arguments, **settings):
    lines = succeeds("info", *arguments, **settings).splitlines()
    return {name: value.strip() for name, value in (line.split(":", 1) for line in lines)}


def info_describes_the_model():
    fields = info("-m", str(model()))
    expected = {"architecture": "BERT", "layers": "6", "heads": "12", "hidden": "384", "positions": "512",
                "vocabulary": "30522", "parameters": "22713216", "model": model().name}
    assert {name: fields[name] for name in expected} == expected
    assert os.path.samefile(fields["directory"], model())


def the_default_model_is_in_the_data_folder():
    data = FOLDER / "data"
    (data / "attn" / "models").mkdir(parents=True)
    (data / "attn" / "models" / "all-MiniLM-L6-v2").symlink_to(model().resolve())
    fields = info(env={"XDG_DATA_HOME": str(data)})
    assert fields["model"] == "all-MiniLM-L6-v2" and fields["layers"] == "6"
    # Which model writes is told where none is asked for.
    assert "attn-fetch-model generator" in fields.pop("generator")
    assert info("-m", "all-MiniLM-L6-v2", env={"XDG_DATA_HOME": str(data)}) == fields
    home = FOLDER / "other-home"
    (home / ".local").mkdir(parents=True)
    (home / ".local" / "share").symlink_to(data)
    assert info(env={"HOME": str(home)})["layers"] == "6"


def attn_model_names_the_model():
    assert info(env={"ATTN_MODEL": str(model())})["layers"] == "6"
    fails(1, "absent", "info", "-m", "absent", env={"ATTN_MODEL": str(model())})
    text = succeeds("look", "--from", "it", SENTENCE, env={"ATTN_MODEL": str(model())})
    assert text.startswith("screwdriver  0.119"), text


def a_snapshot_of_the_hugging_face_cache():
    repository = FOLDER / "cache" / "hub" / "models--org--some-model"
    snapshot = repository / "snapshots" / "0123abcd"
    snapshot.parent.mkdir(parents=True)
    snapshot.symlink_to(model().resolve())
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0123abcd")
    for env in [{"HF_HOME": str(FOLDER / "cache")}, {"HF_HUB_CACHE": str(FOLDER / "cache" / "hub")}]:
        fields = info("-m", "org/some-model", env=env)
        assert fields["layers"] == "6" and "0123abcd" in fields["directory"], fields
    fails(1, "org/other-model", "info", "-m", "org/other-model", env={"HF_HOME": str(FOLDER / "cache")})


def refuses(name, parts, verbs=ALL, **files):
    folder = damaged_model(name, **files)
    for verb in verbs:
        fails(1, [f"attn {verb}: ", *parts], verb, "-m", folder, SENTENCE)


def config(**changes):
    content = json.loads((model() / "config.json").read_text())
    content.update(changes)
    return json.dumps({name: value for name, value in content.items() if value is not None})


def missing_files_are_named():
    refuses("no-config", ["config.json"], config__json=None)
    refuses("no-weights", ["model.safetensors"], model__safetensors=None)
    refuses("no-tokenizer", ["tokenizer.json", "vocab.txt"], [*ALL, "tokenize"],
            tokenizer__json=None, vocab__txt=None)
    empty = FOLDER / "models" / "empty"
    empty.mkdir(parents=True)
    fails(1, "config.json", "look", "-m", str(empty), SENTENCE)


def truncated_files_are_named():
    weights = (model() / "model.safetensors").read_bytes()
    size = int.from_bytes(weights[:8], "little")
    for name, length in [("no-weights-bytes", 0), ("half-prefix", 5), ("half-header", 4000),
                         ("header-alone", 8 + size), ("half-data", 100000)]:
        refuses(name, ["model.safetensors"], model__safetensors=weights[:length])
    for name in ["config.json", "tokenizer.json", "modules.json"]:
        content = (model() / name).read_bytes()
        verbs = ["embed"] if name == "modules.json" else ALL
        refuses(f"half-{name}", [name], verbs, **{name.replace(".", "__"): content[:len(content) // 2]})
        refuses(f"blank-{name}", [name], verbs, **{name.replace(".", "__"): b""})


def malformed_files_are_named():
    weights = (model() / "model.safetensors").read_bytes()[:200000]
    refuses("huge-header", ["model.safetensors"], model__safetensors=b"\xff" * 8 + weights[8:])
    refuses("no-json", ["model.safetensors"], model__safetensors=weights[:8] + b"\0" * 100000)
    refuses("binary-config", ["config.json"], config__json=b"\x7fELF\0\1")
    refuses("list-config", ["config.json"], config__json="[]")
    refuses("deep-tokenizer", ["tokenizer.json"], [*ALL, "tokenize"], tokenizer__json="[" * 100000)


def small_files_are_named_with_their_folder():
    refuses("blank-tokenizer", [f'{FOLDER / "models" / "blank-tokenizer"}: tokenizer.json'], tokenizer__json="{}")
    refuses("blank-modules", [f'{FOLDER / "models" / "blank-modules"}: modules.json'], ["embed"],
            modules__json='[{"type": "x"}]')


def results_that_are_not_finite_are_refused():
    weights = bytearray((model() / "model.safetensors").read_bytes())
    size = int.from_bytes(weights[:8], "little")
    header = json.loads(weights[8:8 + size])
    begin = 8 + size + header["encoder.layer.3.attention.self.key.weight"]["data_offsets"][0]
    weights[begin:begin + 4] = b"\0\0\xc0\x7f"
    refuses("nan-weight", ["not finite", "weights"], model__safetensors=bytes(weights))


def other_architectures_are_refused_by_name():
    refuses("t5", ["config.json", "model_type t5", "bert"], config__json=config(model_type="t5"))
    refuses("gpt2", ["config.json", "gpt2", "bert"], ["embed"], config__json=config(model_type="gpt2"))
    refuses("no-type", ["config.json", "model_type"], config__json=config(model_type=None))
    refuses("snake", ["config.json", "snake"], config__json=config(hidden_act="snake"))
    refuses("text-layers", ["config.json", "num_hidden_layers"], config__json=config(num_hidden_layers="six"))
    refuses("no-layers", ["config.json", "num_hidden_layers"], config__json=config(num_hidden_layers=None))
    refuses("half-head", ["config.json", "num_attention_heads"], config__json=config(num_attention_heads=5))


def weights_that_do_not_fit_the_config_are_refused_by_name():
    refuses("wide", ["weight"], config__json=config(hidden_size=768))
    refuses("deep", ["layer.6"], config__json=config(num_hidden_layers=7))
    refuses("few-words", ["word_embeddings"], config__json=config(vocab_size=1000))


def other_tokenizers_are_refused_by_name():
    content = json.loads((model() / "tokenizer.json").read_text())
    content["model"]["type"] = "Unigram"
    refuses("unigram", ["tokenizer.json", "Unigram"], [*ALL, "tokenize"], tokenizer__json=json.dumps(content))


def other_poolings_are_refused_by_name():
    folder = damaged_model("pooling", **{"1_Pooling": None})
    fails(1, "1_Pooling", "embed", "-m", folder, SENTENCE)


def vocab_txt_does_without_tokenizer_json():
    folder = damaged_model("vocabulary", tokenizer__json=None)
    result = attn("look", "--from", "it", "-m", folder, SENTENCE)
    assert result.status == 0 and result.out.startswith("screwdriver  0.119"), result.err


def a_broken_model_is_told_by_info():
    folder = damaged_model("info-t5", config__json=config(model_type="t5"))
    fails(1, ["attn info: ", "t5"], "info", "-m", folder)


tap.run([
    info_describes_the_model,
    the_default_model_is_in_the_data_folder,
    attn_model_names_the_model,
    a_snapshot_of_the_hugging_face_cache,
    missing_files_are_named,
    truncated_files_are_named,
    malformed_files_are_named,
    small_files_are_named_with_their_folder,
    results_that_are_not_finite_are_refused,
    other_architectures_are_refused_by_name,
    weights_that_do_not_fit_the_config_are_refused_by_name,
    other_tokenizers_are_refused_by_name,
    other_poolings_are_refused_by_name,
    vocab_txt_does_without_tokenizer_json,
    a_broken_model_is_told_by_info,
])
