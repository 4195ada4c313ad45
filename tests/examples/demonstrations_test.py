"""The programs of examples/ that demonstrate something show it, in short runs.

    demonstrations_test.py ROOT PROGRAM…      (as example-NAME)
"""
import math
import re
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

sys.path.append(str(Path(sys.argv[1], "tests")))

import tap  # noqa: E402

PROGRAMS = {Path(program).name.removeprefix("example-"): program for program in sys.argv[2:]}
SVG = "{http://www.w3.org/2000/svg}"


def run(name, *arguments):
    done = subprocess.run([PROGRAMS[name], *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"{name} ended with {done.returncode}: {done.stderr}"
    return done.stdout.splitlines()


def near(found, wanted, tolerance, what):
    assert abs(found - wanted) <= tolerance, f"{what}: {found}, expected {wanted} ± {tolerance}"


class Normal:
    """The random numbers of examples/scale.c."""

    def __init__(self):
        self.state = 88172645463325252

    def uniform(self):
        for shift in (13, -7, 17):
            shifted = self.state << shift if shift > 0 else self.state >> -shift
            self.state = (self.state ^ shifted) & (2**64 - 1)
        return ((self.state >> 11) + 0.5) / 2**53

    def rows(self, count, dim):
        def one():
            radius = math.sqrt(-2 * math.log(self.uniform()))
            number = radius * math.cos(2 * math.pi * self.uniform())
            return struct.unpack("f", struct.pack("f", number))[0]

        return [[one() for _ in range(dim)] for _ in range(count)]


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


def measure(queries, keys, values, d_output, scale):
    """What a line of the table says: variance, largest weight, entropy, median gradient."""
    variances, largest, entropies, lengths = [], [], [], []
    for query, d_o in zip(queries, d_output):
        scores = [scale * dot(query, key) for key in keys]
        powers = [math.exp(score - max(scores)) for score in scores]
        weights = [power / math.fsum(powers) for power in powers]
        d_weights = [dot(d_o, value) for value in values]
        mean = dot(weights, d_weights)
        variances += [score * score for score in scores]
        largest.append(max(weights))
        entropies.append(-math.fsum(w * math.log(w) for w in weights if w > 0))
        lengths.append(math.hypot(*(w * (d_w - mean) for w, d_w in zip(weights, d_weights))))
    lengths.sort()
    half = len(lengths) // 2
    mean = [math.fsum(numbers) / len(numbers) for numbers in (variances, largest, entropies)]
    return mean + [(lengths[half - 1] + lengths[half]) / 2]


def drawn_heights(path):
    """The y of the points of each line of the plot."""
    lines = []
    for element in xml.etree.ElementTree.parse(path).getroot().iter(SVG + "path"):
        points = re.findall(r"[ML]([\d.]+) ([\d.]+)", element.get("d"))
        if len(points) > 2:
            lines.append([float(y) for _, y in points])
    return lines


def scale():
    with tempfile.TemporaryDirectory() as folder:
        plot = Path(folder, "scale.svg")
        lines = run("scale", str(plot))
        heights = drawn_heights(plot)
        for line in (0, 1, 2, 3):
            assert len(heights[line]) == 8, heights
    table = {int(line.split()[0]): [float(number) for number in line.split()[1:]] for line in lines[2:]}
    assert list(table) == [4, 8, 16, 32, 64, 128, 256, 512], lines

    normal = Normal()
    for d in (4, 8):
        tensors = [normal.rows(count, dim) for count, dim in ((256, d), (64, d), (64, 16), (256, 16))]
        pairs = zip(measure(*tensors, 1.0), measure(*tensors, 1 / math.sqrt(d)))
        for place, wanted in enumerate(number for pair in pairs for number in pair):
            near(table[d][place], wanted, 6e-4 if place < 2 else 1.2e-4, f"d_k {d}, column {place}")

    unscaled, scaled = ([row[first::2] for row in table.values()] for first in (0, 1))
    for d, (variance, *_), (divided, *_) in zip(table, unscaled, scaled):
        near(variance / d, 1, 0.12, f"variance at d_k {d}, by d_k")
        near(divided, variance / d, 6e-4, f"scaled variance at d_k {d}")
    for before, after in zip(unscaled, unscaled[1:]):
        assert after[1] > before[1] and after[2] < before[2], "unscaled weights do not gather on one key"
    gradients = [row[3] for row in scaled]
    assert max(gradients) < 1.2 * min(gradients), f"scaled gradients change with d_k: {gradients}"
    assert unscaled[-1][3] < 0.02 * unscaled[0][3], "unscaled gradients do not vanish"

    # In the plot a number of ten times the size stands a third or a fourth of the height above.
    for line, column, decades in ((0, 0, 4), (1, 1, 4), (2, 6, 3), (3, 7, 3)):
        for (a, b), (y_a, y_b) in zip(
            zip([row[column] for row in table.values()], [row[column] for row in table.values()][1:]),
            zip(heights[line], heights[line][1:]),
        ):
            near(y_b - y_a, 260 / decades * math.log10(a / b), 0.5, f"line {line} of the plot")


def scale_names_a_file_that_cannot_be_written():
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "missing", "scale.svg"))
        done = subprocess.run([PROGRAMS["scale"], path], capture_output=True, text=True)
    assert done.returncode == 1 and path in done.stderr, (done.returncode, done.stderr)


def word_at_once():
    rows = [line.split() for line in run("word_at_once", "256")[2:]]
    assert [row[0] for row in rows] == ["64", "128", "256"], rows
    for _, at_once, one_at_a_time, ratio in rows:
        near(float(ratio), float(one_at_a_time) / float(at_once), 0.06 + 0.01 * float(ratio), "ratio")
    assert float(rows[-1][3]) > 1, rows  # 5 to 20 where nothing else runs


def long_range():
    lines = run("long_range", "250")
    sizes = [int(re.search(r": (\d+) parameters$", line)[1]) for line in lines[:2]]
    assert max(sizes) <= 1.05 * min(sizes), sizes
    rows = [[float(number) for number in re.findall(r"[\d.]+", line)] for line in lines[3:-2]]
    assert [row[0] for row in rows] == [25 * n for n in range(11)], lines
    chance = 100 / 16
    assert max(rows[0][1:]) < 2 * chance, f"untrained nets know answers: {rows[0]}"
    assert rows[-1][1] >= 95, f"attention has not learned the task: {rows[-1]}"
    assert rows[-1][2] <= 3 * chance, f"the recurrent net has learned the task: {rows[-1]}"
    for line in lines[-2:]:
        assert re.fullmatch(r"(attention|recurrent net): \d+\.\d\d s", line), line


def a_length_that_is_none_is_refused():
    for name, arguments in [("long_range", ["abc"]), ("long_range", ["0"]), ("word_at_once", ["abc"]),
                            ("word_at_once", ["63"]), ("word_at_once", ["64", "64"])]:
        done = subprocess.run([PROGRAMS[name], *arguments], capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr.startswith(f"usage: {name} "), (arguments, done)
        assert not done.stdout, (arguments, done.stdout)


tap.run([scale, scale_names_a_file_that_cannot_be_written, word_at_once, long_range,
         a_length_that_is_none_is_refused])
