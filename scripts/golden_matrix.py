#!/usr/bin/env python3
"""Makes tests/data/golden/matrix.bin: random blocks of each type of GGML, and the weights they mean.

    golden_matrix.py OUTPUT_DIRECTORY

Needs gguf, whose dequantize is the reference. For each type in the order of TYPES the file has
BLOCKS blocks and then their weights as float32, little-endian.
"""

import pathlib
import sys

import gguf
import numpy

BLOCKS = 3
# Each type, and where its blocks have numbers of f16.
TYPES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2],
         "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}  # fmt: skip


def main(folder):
    random = numpy.random.default_rng(6)
    with open(folder / "matrix.bin", "wb") as file:
        for name, halves in TYPES.items():
            kind = gguf.GGMLQuantizationType[name]
            size = gguf.GGML_QUANT_SIZES[kind][1]
            blocks = random.integers(0, 256, (BLOCKS, size), dtype=numpy.uint8)
            for place in halves:
                scales = random.uniform(-2, 2, (BLOCKS, 1)).astype("<f2")
                blocks[:, place : place + 2] = scales.view(numpy.uint8)
            file.write(blocks.tobytes())
            file.write(gguf.quants.dequantize(blocks, kind).astype("<f4").tobytes())


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
