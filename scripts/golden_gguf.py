#!/usr/bin/env python3
"""Makes tests/data/golden/gguf.gguf and gguf.json: a value and a tensor of each type.

    golden_gguf.py OUTPUT_DIRECTORY

Needs numpy and gguf. gguf.json holds, by gguf's own reading, the floats of each tensor as the bits
of float32 in hexadecimal, null for a type of whole numbers. Blocks are random bytes with scales that
are halves of both signs, the largest and a denormal among them.
"""

import json
import pathlib
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import dequantize

# Where a block has its halves.
HALVES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q4_K": [0, 2],
          "Q5_K": [0, 2], "Q6_K": [208]}  # fmt: skip
SCALES = [0.0625, -0.7, 1.3e-3, 5.96e-8, 65504.0, -0.0]
FLOATS = {"F32": np.float32, "F16": np.float16, "F64": np.float64}
WHOLE = {"I8": np.int8, "I16": np.int16, "I32": np.int32, "I64": np.int64}

VALUES = {
    "UINT8": 200, "INT8": -100, "UINT16": 60000, "INT16": -30000, "UINT32": 4000000000,
    "INT32": -2000000000, "FLOAT32": 0.1, "BOOL": True, "STRING": "größe 😀", "UINT64": 2**53 + 1,
    "INT64": -(2**53) - 1, "FLOAT64": 0.1,
}  # fmt: skip


def blocks(name, rows, per_row, random):
    size = GGML_QUANT_SIZES[GGMLQuantizationType[name]][1]
    data = random.integers(0, 256, (rows * per_row, size), dtype=np.uint8)
    for block in range(rows * per_row):
        for i, place in enumerate(HALVES[name]):
            scale = SCALES[(block + i) % len(SCALES)]
            data[block, place : place + 2] = np.frombuffer(np.float16(scale).tobytes(), np.uint8)
    return data.reshape(rows, per_row * size)


def add_tensors(writer):
    random = np.random.default_rng(6)
    numbers = random.standard_normal((2, 3)).astype(np.float32)
    for name, dtype in FLOATS.items():
        writer.add_tensor(name.lower(), numbers.astype(dtype))
    upper = (numbers.view(np.uint32) >> 16).astype(np.uint16)
    writer.add_tensor("bf16", upper.view(np.uint8), raw_dtype=GGMLQuantizationType.BF16)
    for name, dtype in WHOLE.items():
        writer.add_tensor(name.lower(), np.array([1, -2, 3], dtype))
    for name in HALVES:
        type = GGMLQuantizationType[name]
        rows, per_row = (3, 2) if GGML_QUANT_SIZES[type][0] == 32 else (2, 1)
        writer.add_tensor(name.lower(), blocks(name, rows, per_row, random), raw_dtype=type)
    writer.add_tensor("four.dimensions", np.arange(24, dtype=np.float32).reshape(2, 1, 3, 4))


def add_values(writer):
    for name, value in VALUES.items():
        writer.add_key_value("value." + name.lower(), value, GGUFValueType[name])
    arrays = {"strings": ["", "a b", "Ġ", "größe"], "integers": [-1, 0, 2**31 - 1],
              "floats": [0.5, -1e30], "bools": [True, False]}  # fmt: skip
    for name, value in arrays.items():
        writer.add_array("array." + name, value)
    writer.add_key_value("array.unsigned", [0, 2**31 - 1], GGUFValueType.ARRAY,
                         sub_type=GGUFValueType.UINT32)  # fmt: skip
    writer.add_key_value("array.bytes", [1, 2, 3], GGUFValueType.ARRAY,
                         sub_type=GGUFValueType.UINT8)  # fmt: skip


def write(path):
    writer = GGUFWriter(path, "golden")
    add_values(writer)
    add_tensors(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def expected(tensor):
    type = tensor.tensor_type
    floats = None
    if type.name not in WHOLE:
        data = tensor.data if type.name != "F64" else tensor.data.astype(np.float32)
        numbers = data if type.name in FLOATS else dequantize(data, type)
        floats = [f"{bits:08x}" for bits in numbers.astype(np.float32).flatten().view(np.uint32)]
    return {"type": type.name, "shape": [int(n) for n in reversed(tensor.shape)], "floats": floats}


def main(folder):
    write(folder / "gguf.gguf")
    tensors = GGUFReader(folder / "gguf.gguf").tensors
    lines = (f" {json.dumps(tensor.name)}: {json.dumps(expected(tensor))}" for tensor in tensors)
    (folder / "gguf.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
