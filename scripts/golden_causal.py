#!/usr/bin/env python3
"""Makes tests/data/models/causal and tests/data/golden/generator.*: what Transformers' GPT-2 and Llama say.

    golden_causal.py MODELS_DIRECTORY
    golden_causal.py --generator FILE.gguf OUTPUT_DIRECTORY

Needs torch, transformers, safetensors and gguf. The first form makes small random checkpoints, each a directory
NAME as save_pretrained writes it (f32, f16 or bf16, one file or shards) or a file NAME.gguf as llama.cpp's
converter lays them out (rows of a Llama's q and k in neighbouring pairs), with NAME.json beside it: ids of one
text, the logits of each place, and the attention weights among the first places, computed in float64 from the
numbers that the file holds.

The second form reads a Llama from a GGUF file, each tensor dequantised to float32, and computes with
LlamaForCausalLM in float32. generator.json holds for each prompt its ids, the ids that follow greedily, and the
smallest distance between the first and the second logit on that way; generator.bin holds, as float32, every
`step`-th logit of the last `rows` places of each prompt.
"""

import json
import pathlib
import sys

import gguf
import numpy
import torch
import transformers

TOKENS = 19
LOOKED_AT = 8
VOCABULARY = 61
ENDS = {"bos_token_id": 0, "eos_token_id": 0}

GPT2 = dict(vocab_size=VOCABULARY, n_positions=24, n_embd=24, n_layer=2, n_head=3, n_inner=40, **ENDS)
LLAMA = dict(vocab_size=VOCABULARY, hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, intermediate_size=40, max_position_embeddings=48, rms_norm_eps=1e-5,
             rope_theta=1e5, **ENDS)
BLOCKS = dict(LLAMA, hidden_size=64, intermediate_size=96)

GENERATED = 64
LOGIT_STEP = 61
LOGIT_ROWS = 2
PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "def fibonacci(n):\n",
    "Water boils at",
    "<|im_start|>user\nWhat is attention?<|im_end|>\n<|im_start|>assistant\n",
    "The three primary colours are",
    "In 1969, the first people",
    "Question: why is the sky blue?\nAnswer:",
    "Dear Sir or Madam,\n\nI am writing",
    "La lune est",
]


def randomize(model):
    """Larger numbers than training starts from, biases and norms too, so that every path counts, but none that
    grow from layer to layer."""
    deviation = 1.2 / model.config.hidden_size**0.5
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = torch.randn(parameter.shape) * deviation
            norm = "norm" in name.lower() or "ln_" in name
            parameter.copy_(values + 1 if norm and name.endswith("weight") else values)


def write_logits(model, path):
    """In float64: a float32 pass would add its own rounding to what is compared."""
    model = model.double().eval()
    ids = torch.randint(model.config.vocab_size, (1, TOKENS))
    with torch.no_grad():
        result = model(ids, output_attentions=True)
    logits = result.logits[0]
    rows = [[float(f"{logit:.9g}") for logit in row] for row in logits.tolist()]
    weights = torch.stack(result.attentions)[:, 0, :, :LOOKED_AT, :LOOKED_AT]
    attention = {"shape": list(weights.shape), "data": [round(w, 8) for w in weights.flatten().tolist()]}
    path.write_text(json.dumps({"ids": ids[0].tolist(), "logits": rows, "attention": attention}) + "\n")
    print(f"{path.name}: largest logit {logits.abs().max():.3f}")


def gpt2(**settings):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(attn_implementation="eager",
                                                                **(GPT2 | settings)))


def llama(base=LLAMA, **settings):
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(attn_implementation="eager",
                                                                  **(base | settings)))


def write_directory(folder, name, model, dtype, **options):
    randomize(model)
    model.to(dtype).save_pretrained(folder / name, **options)
    (folder / name / "generation_config.json").unlink(missing_ok=True)
    for file in (folder / name).iterdir():
        file.chmod(0o644)
    # Not the model itself, whose cast to 16 bits took the angles of its positions with it.
    kept = type(model).from_pretrained(folder / name, dtype=torch.float32, attn_implementation="eager")
    write_logits(kept, folder / f"{name}.json")


def neighbours(rows, heads):
    """Rows of each head from halves to neighbouring pairs, as llama.cpp's converter does it."""
    shape = rows.shape
    return rows.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def halves(rows, heads):
    shape = rows.shape
    return rows.reshape(heads, shape[0] // heads // 2, 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


GGUF_LLAMA = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}
GGUF_GPT2 = {
    "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
    "ln_1": "attn_norm", "ln_2": "ffn_norm",
}
GGUF_WHOLE = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "transformer.wte": "token_embd", "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm",
}


def gguf_name(name):
    """model.layers.3.mlp.up_proj.weight: blk.3.ffn_up.weight"""
    part, end = name.rsplit(".", 1)
    if part in GGUF_WHOLE:
        return f"{GGUF_WHOLE[part]}.{end}"
    layer, inside = part.split(".", 3)[2:]
    return f"blk.{layer}.{(GGUF_LLAMA | GGUF_GPT2)[inside]}.{end}"


def heads_of(name, config):
    """How many heads the rows of a tensor of q or k make; 0 for others."""
    if ".q_proj." in name:
        return config.num_attention_heads
    return config.num_key_value_heads if ".k_proj." in name else 0


def write_metadata(writer, config):
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_head_count(config.num_attention_heads)
    if config.model_type == "gpt2":
        writer.add_feed_forward_length(config.n_inner)
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
        return
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)


def write_gguf(folder, name, model, kinds):
    """Matrices of layers have the kinds in turn, tables the first one; the model gets what they became."""
    randomize(model)
    config = model.config
    writer = gguf.GGUFWriter(folder / f"{name}.gguf", config.model_type)
    write_metadata(writer, config)
    matrices = 0
    for tensor_name, parameter in model.named_parameters():
        numbers = parameter.detach().numpy()
        kind = gguf.GGMLQuantizationType.F32
        if numbers.ndim == 2:
            layered = ".h." in tensor_name or ".layers." in tensor_name
            kind = kinds[matrices % len(kinds)] if layered else kinds[0]
            matrices += layered
        turned = config.model_type == "gpt2" and ".h." in tensor_name and numbers.ndim == 2
        heads = heads_of(tensor_name, config)
        laid = numbers.T if turned else neighbours(numbers, heads) if heads else numbers
        stored = gguf.quants.quantize(numpy.ascontiguousarray(laid), kind)
        writer.add_tensor(gguf_name(tensor_name), stored, raw_dtype=kind)
        kept = gguf.quants.dequantize(stored, kind)
        kept = kept.T if turned else halves(kept, heads) if heads else kept
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(numpy.ascontiguousarray(kept)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    write_logits(model, folder / f"{name}.json")


def write_models(folder):
    kinds = gguf.GGMLQuantizationType
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(20261130)
    write_directory(folder, "gpt2_f32", gpt2(activation_function="gelu"), torch.float32)
    write_directory(folder, "gpt2_f16", gpt2(), torch.float16)
    write_directory(folder, "llama_f32", llama(tie_word_embeddings=True), torch.float32)
    write_directory(folder, "llama_bf16",
                    llama(head_dim=10, attention_bias=True, mlp_bias=True, num_key_value_heads=1),
                    torch.bfloat16, max_shard_size="12KB")
    write_gguf(folder, "gpt2", gpt2(), [kinds.F16])
    write_gguf(folder, "llama_bias", llama(head_dim=10, attention_bias=True, mlp_bias=True), [kinds.BF16])
    write_gguf(folder, "llama_blocks", llama(BLOCKS, tie_word_embeddings=True),
               [kinds.Q8_0, kinds.Q4_1, kinds.Q4_0, kinds.Q5_1, kinds.Q5_0])


def field(reader, key):
    return reader.fields[key].contents()


def open_generator(path):
    reader = gguf.GGUFReader(path)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    config = transformers.LlamaConfig(
        attn_implementation="eager",
        vocab_size=int(tensors["token_embd.weight"].shape[1]),
        hidden_size=field(reader, "llama.embedding_length"),
        num_hidden_layers=field(reader, "llama.block_count"),
        num_attention_heads=field(reader, "llama.attention.head_count"),
        num_key_value_heads=field(reader, "llama.attention.head_count_kv"),
        intermediate_size=field(reader, "llama.feed_forward_length"),
        max_position_embeddings=field(reader, "llama.context_length"),
        rms_norm_eps=field(reader, "llama.attention.layer_norm_rms_epsilon"),
        rope_theta=field(reader, "llama.rope.freq_base"),
        tie_word_embeddings="output.weight" not in tensors)
    model = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            tensor = tensors[gguf_name(name)]
            numbers = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            heads = heads_of(name, config)
            numbers = halves(numbers, heads) if heads else numbers
            parameter.copy_(torch.from_numpy(numpy.ascontiguousarray(numbers)))
    return model.eval()


def write_greedily(model, ids):
    """The ids that follow, and the smallest distance of the first logit to the second."""
    written, distance, cache, given = [], float("inf"), None, torch.tensor([ids])
    with torch.no_grad():
        for _ in range(GENERATED):
            result = model(given, past_key_values=cache, use_cache=True)
            cache = result.past_key_values
            first, second = result.logits[0, -1].topk(2).values.tolist()
            distance = min(distance, first - second)
            written.append(int(result.logits[0, -1].argmax()))
            given = torch.tensor([written[-1:]])
    return written, distance


def write_generator(path, folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = open_generator(path)
    golden, rows = [], []
    for text in PROMPTS:
        ids = tokenizer(text, add_special_tokens=False).input_ids
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, -LOGIT_ROWS:]
        rows.append(logits[:, ::LOGIT_STEP].float().numpy())
        written, distance = write_greedily(model, ids)
        golden.append({"text": text, "ids": ids, "written": written, "distance": distance})
        print(f"{text!r}: distance {distance:.2g}: {tokenizer.decode(written)!r}")
    numpy.concatenate(rows).astype("<f4").tofile(folder / "generator.bin")
    settings = {"step": LOGIT_STEP, "rows": LOGIT_ROWS, "vocabulary": model.config.vocab_size}
    lines = ",\n".join(json.dumps(one) for one in golden)
    (folder / "generator.json").write_text(f"{json.dumps(settings)[:-1]}, \"prompts\": [\n{lines}\n]}}\n")


if __name__ == "__main__":
    if len(sys.argv) == 2 and not sys.argv[1].startswith("-"):
        write_models(pathlib.Path(sys.argv[1]))
    elif len(sys.argv) == 4 and sys.argv[1] == "--generator":
        write_generator(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
    else:
        sys.exit(__doc__)
