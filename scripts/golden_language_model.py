#!/usr/bin/env python3
"""Makes tests/data/models/gpt2 and bert: small random models of Transformers', what they lose on a batch,
and the gradient of every parameter.

    golden_language_model.py OUTPUT_DIRECTORY

Needs torch, transformers and safetensors. Everything is computed in float64 from weights that are exact in
float32. Each directory holds

    config.json, model.safetensors   as save_pretrained writes them
    gradients.safetensors            float32: the gradient of every parameter, by the model's own names
    golden.json                      the batch (starts, ids, labels; -100 is no label), the sum of its
                                     losses, how many labels count, the logits of each sequence's last token,
                                     and of the third sequence all attention weights

The gradients are those of the mean: the sum divided by the labels that count.
"""

import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import save_file

LENGTHS = [5, 1, 10, 7]
IGNORED = -100


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=23, n_positions=12, n_embd=16, n_layer=2, n_head=4, attn_implementation="eager",
        bos_token_id=0, eos_token_id=0))


def bert():
    return transformers.BertForMaskedLM(transformers.BertConfig(
        vocab_size=19, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=40,
        max_position_embeddings=10, attn_implementation="eager"))


def randomize(model):
    """Larger numbers than training starts from, biases and norms too, so that every path counts."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = torch.randn(parameter.shape) * 0.25
            norm = "norm" in name.lower() or "ln_" in name
            parameter.copy_(values + 1 if norm and name.endswith("weight") else values)


def make_batch(vocabulary):
    """Without token 0: as BERT's padding it would get no gradient where it stands in the text."""
    ids = [torch.randint(1, vocabulary, (length,)) for length in LENGTHS]
    labels = [torch.randint(vocabulary, (length,)) for length in LENGTHS]
    for sequence in labels:
        sequence[torch.rand(sequence.shape) < 0.3] = IGNORED
    return ids, labels


def write(name, model, folder):
    randomize(model)
    model.eval()
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)

    model.double()
    ids, labels = make_batch(model.config.vocab_size)
    counts = sum(int((sequence != IGNORED).sum()) for sequence in labels)
    total, last = 0, []
    for sequence, wanted in zip(ids, labels):
        logits = model(sequence[None]).logits[0]
        total = total + torch.nn.functional.cross_entropy(logits, wanted, ignore_index=IGNORED,
                                                          reduction="sum")
        last.append(logits[-1].tolist())
    (total / counts).backward()
    attention = torch.stack(model(ids[2][None], output_attentions=True).attentions)[:, 0]

    gradients = {name: parameter.grad.float().contiguous() for name, parameter in model.named_parameters()}
    save_file(gradients, folder / "gradients.safetensors")
    starts = [0]
    for length in LENGTHS:
        starts.append(starts[-1] + length)
    golden = {
        "starts": starts,
        "ids": torch.cat(ids).tolist(),
        "labels": torch.cat(labels).tolist(),
        "counts": counts,
        "loss": total.item(),
        "last_logits": last,
        "attention": {"shape": list(attention.shape), "data": [round(w, 9) for w in attention.flatten().tolist()]},
    }
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    print(f"{name}: loss {total.item() / counts:.6f} over {counts} labels, {len(gradients)} parameters")


def main(output):
    torch.manual_seed(20240607)
    for name, make in [("gpt2", gpt2), ("bert", bert)]:
        write(name, make(), pathlib.Path(output) / name)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
