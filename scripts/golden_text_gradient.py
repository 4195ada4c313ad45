#!/usr/bin/env python3
"""Makes tests/data/golden/text_gradient.{json,bin}: how what a small model tells depends on its attention weights,
by PyTorch's autograd.

    golden_text_gradient.py DATA_DIRECTORY

DATA_DIRECTORY is tests/data, whose models/ has the checkpoints (of golden_causal.py and others). Needs torch,
transformers, numpy and gguf. All is computed in float64 from the numbers that a file holds, those of a GGUF file
dequantised, by eager attention, whose weights P are a tensor of the graph.

    text_gradient.json  for texts of several lengths and each model: its path under DATA_DIRECTORY, the ids and types
                        of a text; y, which is ln p of the likeliest token behind it, and that token, or for a BERT
                        half the squared norm of the mean of its last hidden states; "shape" [layers, heads, tokens,
                        tokens] and where in the other file, counted in floats, the gradient begins
    text_gradient.bin   little-endian float32: dy/dP of each layer
"""

import json
import pathlib
import sys

import gguf
import numpy
import torch
import transformers

from golden_causal import gguf_name, halves, heads_of

LENGTHS = [13, 5, 1]
MODELS = ["bert", "masked_words", "masked_words_tanh", "causal/gpt2_f32", "causal/gpt2_f16", "causal/gpt2.gguf",
          "causal/llama_f32", "causal/llama_bf16", "causal/llama_bias.gguf", "causal/llama_blocks.gguf"]


def field(reader, key):
    return reader.fields[key].contents()


def gguf_config(reader, tensors):
    kind = field(reader, "general.architecture")
    get = lambda key: field(reader, f"{kind}.{key}")
    shape = dict(vocab_size=int(tensors["token_embd.weight"].shape[1]), attn_implementation="eager")
    if kind == "gpt2":
        return transformers.GPT2LMHeadModel, transformers.GPT2Config(
            **shape, n_positions=get("context_length"), n_embd=get("embedding_length"), n_layer=get("block_count"),
            n_head=get("attention.head_count"), n_inner=get("feed_forward_length"),
            layer_norm_epsilon=get("attention.layer_norm_epsilon"))
    return transformers.LlamaForCausalLM, transformers.LlamaConfig(
        **shape, hidden_size=get("embedding_length"), num_hidden_layers=get("block_count"),
        num_attention_heads=get("attention.head_count"), num_key_value_heads=get("attention.head_count_kv"),
        head_dim=get("attention.key_length"), intermediate_size=get("feed_forward_length"),
        max_position_embeddings=get("context_length"), rms_norm_eps=get("attention.layer_norm_rms_epsilon"),
        rope_theta=get("rope.freq_base"), tie_word_embeddings="output.weight" not in tensors,
        attention_bias="blk.0.attn_q.bias" in tensors, mlp_bias="blk.0.ffn_up.bias" in tensors)


def open_gguf(path):
    """The model with what its file's tensors are, dequantised and laid as Transformers has them."""
    reader = gguf.GGUFReader(path)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    kind, config = gguf_config(reader, tensors)
    model = kind(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            tensor = tensors[gguf_name(name)]
            numbers = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            turned = config.model_type == "gpt2" and ".h." in name and numbers.ndim == 2
            heads = heads_of(name, config)
            numbers = numbers.T if turned else halves(numbers, heads) if heads else numbers
            parameter.copy_(torch.from_numpy(numpy.array(numbers, order="C")))
    return model


def open_model(path):
    if path.suffix == ".gguf":
        return open_gguf(path)
    config = transformers.AutoConfig.from_pretrained(path)
    options = dict(dtype=torch.float32, attn_implementation="eager")
    if config.model_type == "bert":
        return transformers.BertModel.from_pretrained(path, add_pooling_layer=False, **options)
    return transformers.AutoModelForCausalLM.from_pretrained(path, **options)


def tell(model, ids, types):
    """y, the token that it is of (or None), and the attention weights that it depends on."""
    if model.config.model_type == "bert":
        result = model(ids, token_type_ids=types, output_attentions=True)
        return 0.5 * result.last_hidden_state[0].mean(0).square().sum(), None, result.attentions
    result = model(ids, output_attentions=True)
    logits = result.logits[0, -1]
    first, second = logits.topk(2).values.tolist()
    if not first - second > 1e-2:
        sys.exit("the likeliest two tokens are too near each other: take another text")
    return logits.log_softmax(0).max(), int(logits.argmax()), result.attentions


def gradient_of(model, ids, types):
    y, token, attentions = tell(model, ids, types)
    gradients = torch.autograd.grad(y, attentions)
    return y.item(), token, torch.stack(gradients)[:, 0].numpy()


def write(folder):
    torch.manual_seed(7)
    golden, numbers, begin = [], [], 0
    for name in MODELS:
        model = open_model(folder / "models" / name).double().eval()
        config = model.config
        for length in LENGTHS:
            tokens = min(length, config.max_position_embeddings - 1)
            ids = torch.randint(config.vocab_size, (1, tokens))
            types = (torch.arange(tokens) > tokens // 2).long()[None]
            y, token, gradient = gradient_of(model, ids, types)
            golden.append({"model": f"models/{name}", "ids": ids[0].tolist(), "types": types[0].tolist(), "y": y,
                           "token": token, "shape": list(gradient.shape), "begin": begin})
            numbers.append(gradient.astype("<f4").ravel())
            begin += gradient.size
            sizes = [f"{numpy.linalg.norm(layer):.3g}" for layer in gradient]
            print(f"{name}, {tokens} tokens: y {y:.6f}, norms of the layers' gradients {', '.join(sizes)}")
    lines = ",\n".join(json.dumps(one) for one in golden)
    (folder / "golden/text_gradient.json").write_text(f"{{\"texts\": [\n{lines}\n]}}\n")
    numpy.concatenate(numbers).tofile(folder / "golden/text_gradient.bin")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    write(pathlib.Path(sys.argv[1]))
