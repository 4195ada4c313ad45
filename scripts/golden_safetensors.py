#!/usr/bin/env python3
"""Makes tests/data/golden/types.safetensors and types.json: what PyTorch stores, and what it reads.

    golden_safetensors.py OUTPUT_DIRECTORY

Needs torch and safetensors. types.json holds the floats of each tensor as the bits of float32 in
hexadecimal, NaN as "nan", and null for a type that has no conversion.
"""

import json
import pathlib
import struct
import sys

import torch
from safetensors.torch import save_file

VALUES = [0.0, -0.0, 1.0, -1.5, 1 / 3, 65504.0, 1e-4, 6.1e-5, 6e-8, 3e-8, 1e5, 3.4e38, 1e-40,
          float("inf"), float("-inf"), float("nan")]  # fmt: skip
FLOATS = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
OTHERS = {"i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8,
          "u8": torch.uint8, "bool": torch.bool, "f8_e4m3": torch.float8_e4m3fn,
          "f8_e5m2": torch.float8_e5m2}  # fmt: skip


def bits(value):
    return "nan" if value != value else struct.pack(">f", value).hex()


def main(folder):
    tensors = {
        f"{name}.values": torch.tensor(VALUES, dtype=torch.float64).to(dtype).reshape(2, 8)
        for name, dtype in FLOATS.items()
    }
    tensors |= {name: torch.tensor([[0], [1], [1]]).to(dtype) for name, dtype in OTHERS.items()}
    tensors["scalar"] = torch.tensor(0.1, dtype=torch.float16)
    tensors["nothing"] = torch.zeros(3, 0, 2)
    save_file(tensors, folder / "types.safetensors", metadata={"format": "pt"})
    expected = {
        name: {
            "shape": list(tensor.shape),
            "floats": [bits(v) for v in tensor.float().flatten().tolist()]
            if tensor.dtype in FLOATS.values()
            else None,
        }
        for name, tensor in tensors.items()
    }
    lines = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in expected.items())
    (folder / "types.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
