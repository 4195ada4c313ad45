"""Each program of examples/ prints the numbers that plain Python gets from the formula.

    examples_test.py ROOT PROGRAM…      (as example-NAME)
"""
import math
import re
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(sys.argv[1], "tests")))

import tap  # noqa: E402

PROGRAMS = {Path(program).name.removeprefix("example-"): program for program in sys.argv[2:]}
NUMBER = re.compile(r"-?(?:\d+\.\d+|nan|inf)")
TOLERANCE = 6e-5  # half a unit of the last printed digit, and what f32 loses


def attend(query, keys, values, change=lambda j, score: score):
    """One row: (output, weights, log-sum-exp). `change` gives a key's final score."""
    products = [sum(a * b for a, b in zip(query, key)) / math.sqrt(len(query)) for key in keys]
    powers = [math.exp(change(j, product)) for j, product in enumerate(products)]
    weights = [power / math.fsum(powers) for power in powers]
    output = [math.fsum(w * value[c] for w, value in zip(weights, values)) for c in range(len(values[0]))]
    return output, weights, math.log(math.fsum(powers))


def series(factor, shift, modulus, count):
    """What the programs fill their tensors with."""
    return [((factor * i + shift) % modulus - modulus // 2) / 4 for i in range(count)]


def rows_of(numbers, dim):
    return [numbers[at : at + dim] for at in range(0, len(numbers), dim)]


def query_key_value(heads, length, dim):
    """[head][row][dim] of each."""
    three = ((7, 0, 11), (5, 3, 13), (3, 1, 17))
    return [rows_of(rows_of(series(*numbers, heads * length * dim), dim), length) for numbers in three]


def expect(name, *lines):
    """The program prints these lines: (text, numbers), where the text has # for each number."""
    done = subprocess.run([PROGRAMS[name]], capture_output=True, text=True)
    assert done.returncode == 0, f"{name} ended with {done.returncode}: {done.stderr}"
    printed = done.stdout.splitlines()
    assert [NUMBER.sub("#", line) for line in printed] == [text for text, _ in lines], done.stdout
    for line, (_, numbers) in zip(printed, lines):
        found = [float(number) for number in NUMBER.findall(line)]
        assert len(found) == len(numbers), f"{line!r}, expected {numbers}"
        for got, wanted in zip(found, numbers):
            assert abs(got - wanted) <= TOLERANCE, f"{line!r}, expected {numbers}"


def dense():
    batches, length, heads, dim = 2, 5, 3, 4
    rows = rows_of(series(7, 0, 11, batches * length * 3 * heads * dim), dim)
    batch, head, query = 1, 2, 4

    def part(kind):
        return [rows[((batch * length + i) * 3 + kind) * heads + head] for i in range(length)]

    output, weights, log_sum = attend(part(0)[query], part(1), part(2))
    expect("dense", ("output # # # #", output), ("log-sum-exp #", [log_sum]), ("weights # # # # #", weights))


def causal():
    length = 6
    q, k, v = (tensor[1] for tensor in query_key_value(2, length, 4))
    whole, window = (attend(q[-1], k[-seen:], v[-seen:])[0][-2:] for seen in (length, 3))
    expect("causal", ("last row # #", whole), ("chunks give the same bits", []),
           ("last row with a window # #", window))  # fmt: skip


def varlen():
    q, k, v = (tensor[1] for tensor in query_key_value(2, 9, 4))
    slope = 2.0**-8  # of the second head of two
    expected = []
    for number, (begin, end) in enumerate([(0, 3), (3, 4), (4, 4), (4, 9)]):
        if begin == end:
            expected.append((f"sequence {number} is empty", []))
            continue
        middle = (begin + end) // 2
        seen = slice(begin, middle + 1)
        row = attend(q[middle], k[seen], v[seen], lambda j, score: score - slope * (middle - begin - j))
        expected.append((f"sequence {number} # # # #", row[0]))
    expect("varlen", *expected)


def decode_with_cache():
    tokens, dim, head = 40, 8, 3

    def row(kind, token, h):
        return [((5 * kind + 7 * token + 3 * h + 11 * c + token * c) % 13 - 6) / 4 for c in range(dim)]

    keys, values = ([row(kind, token, head // 2) for token in range(tokens)] for kind in (1, 2))
    output = attend(row(0, tokens - 1, head), keys, values)[0]
    expect("decode_with_cache", ("last token # #", output[:2]), ("decode and forward agree", []))


def callback():
    q, k, v = (tensor[0] for tensor in query_key_value(1, 300, 4))
    expected = []
    for i in (0, 149, 298):
        seen = [j for j in range(i, max(i - 30, 0) - 1, -3)]
        row = attend(q[i], [k[j] for j in seen], [v[j] for j in seen], lambda n, score: score - 0.125 * 3 * n)
        expected.append((f"row {i}: # #", row[0][:2]))
    expect("callback", *expected)


def inspect():
    q, k, v = (tensor[0] for tensor in query_key_value(1, 300, 4))
    rows = [attend(q[i], k[: i + 1], v[: i + 1])[1] for i in range(300)]
    expected = []
    for i in (1, 150, 299):
        # Equal keys repeat every thirteen tokens: the lower place comes first.
        top = sorted(range(i + 1), key=lambda j: (-round(rows[i][j], 9), j))[:3]
        text = "".join(f" key {j} #" for j in top)
        entropy = -math.fsum(p * math.log(p) for p in rows[i])
        expected.append((f"row {i}:{text}, entropy #", [rows[i][j] for j in top] + [entropy]))
    expected.append(("key 0 receives #", [math.fsum(row[0] for row in rows)]))
    expect("inspect", *expected)


tap.run([dense, causal, varlen, decode_with_cache, callback, inspect])
