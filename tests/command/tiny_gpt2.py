"""A GPT-2 with byte-level BPE and random weights, made on the spot."""
import json
import random
import struct

from tool import FOLDER

WIDTH, LAYERS, HEADS, POSITIONS = 16, 2, 4, 64


def byte_letters():
    """GPT-2's spelling of the 256 bytes: printable ones stand for themselves, others from U+0100 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in plain else next(others)) for byte in range(256)]


MERGES = [("t", "h"), ("Ġ", "th"), ("Ġth", "e"), ("o", "t"), ("Ġ", "w")]
PIECES = byte_letters() + ["".join(merge) for merge in MERGES] + ["<|endoftext|>"]


def shown(piece):
    """What a look calls it: the text that it stands for, or its bytes where those are none."""
    spelled = bytes(byte_letters().index(letter) for letter in piece)
    try:
        return spelled.decode().replace("\0", "\u2400")
    except UnicodeDecodeError:
        return "".join(f"\\x{byte:02X}" for byte in spelled)


MARKERS = ["<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def write_tokenizer(folder):
    """In GPT-2's own two files."""
    (folder / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(PIECES)}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in MERGES))
    return len(PIECES)


def write_chat_tokenizer(folder):
    """As tokenizer.json, with the markers of ChatML, and the template that writes them."""
    vocabulary = {piece: number for number, piece in enumerate(PIECES)}
    added = [{"id": len(PIECES) + number, "content": marker, "special": True, "single_word": False,
              "lstrip": False, "rstrip": False, "normalized": False} for number, marker in enumerate(MARKERS)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    description = {"model": {"type": "BPE", "vocab": vocabulary, "merges": [" ".join(merge) for merge in MERGES]},
                   "pre_tokenizer": byte_level, "decoder": byte_level, "added_tokens": added}
    (folder / "tokenizer.json").write_text(json.dumps(description))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    return len(PIECES) + len(MARKERS)


def shapes(vocabulary):
    yield "wte.weight", [vocabulary, WIDTH]
    yield "wpe.weight", [POSITIONS, WIDTH]
    for layer in range(LAYERS):
        for name, wide in [("attn.c_attn", [WIDTH, 3 * WIDTH]), ("attn.c_proj", [WIDTH, WIDTH]),
                           ("mlp.c_fc", [WIDTH, 4 * WIDTH]), ("mlp.c_proj", [4 * WIDTH, WIDTH])]:
            yield f"h.{layer}.{name}.weight", wide
            yield f"h.{layer}.{name}.bias", wide[1:]
        for name in ["ln_1", "ln_2"]:
            yield f"h.{layer}.{name}.weight", [WIDTH]
            yield f"h.{layer}.{name}.bias", [WIDTH]
    yield "ln_f.weight", [WIDTH]
    yield "ln_f.bias", [WIDTH]


def write_weights(folder, vocabulary):
    source, header, data = random.Random(7), {}, b""
    for name, shape in shapes(vocabulary):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = struct.pack(f"<{count}f", *(source.gauss(0, 0.5) for _ in range(count)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def gpt2(name="gpt2", chat=False, **changes):
    """The folder of such a model; `changes` are of its config."""
    folder = FOLDER / name
    if not folder.exists():
        folder.mkdir(parents=True)
        vocabulary = (write_chat_tokenizer if chat else write_tokenizer)(folder)
        write_weights(folder, vocabulary)
        config = {"model_type": "gpt2", "vocab_size": vocabulary, "n_positions": POSITIONS, "n_embd": WIDTH,
                  "n_layer": LAYERS, "n_head": HEADS, **changes}
        (folder / "config.json").write_text(json.dumps(config))
    return str(folder)
