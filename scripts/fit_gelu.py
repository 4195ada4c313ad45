#!/usr/bin/env python3
"""Makes the polynomial of normal_gate in src/kernel/activation_body.inc. Needs numpy.

Looks for p with  Phi(-a) ~ exp(-a*a/2) * t * p(t),  t = 1 / (1 + 0.285 * a),  Phi the normal
distribution function, that makes the largest error of Phi(-a), for the derivative, and of a * Phi(-a),
for the value, smallest: weighted least squares, where each round gives more weight to the places of the
largest errors (C. Lawson's method). Of the slopes around, 0.285 leaves the smallest error.
"""

import math

import numpy

SLOPE, TERMS, LIMIT = 0.285, 6, 14.0
POINTS, ROUNDS = 4000, 500

end = 1 / (1 + SLOPE * LIMIT)
angle = numpy.pi * (numpy.arange(POINTS) + 0.5) / POINTS
t = end + (1 - end) * (1 - numpy.cos(angle)) / 2
a = (1 / t - 1) / SLOPE

# What t·p(t) stands for, and how much an error of it weighs in Φ(−a) and a·Φ(−a); the floor keeps the
# relative error small far out, where the products themselves vanish.
wanted = numpy.array([math.exp(x * x / 2) * math.erfc(x / math.sqrt(2)) / 2 for x in a])
scale = numpy.maximum(numpy.maximum(a, 1) * numpy.exp(-a * a / 2), 2e-3)
matrix = numpy.vander(t, TERMS, increasing=True) * (t * scale)[:, None]

weight = numpy.ones(POINTS)
best_error, best = numpy.inf, None
for _ in range(ROUNDS):
    root = numpy.sqrt(weight)
    solution = numpy.linalg.lstsq(matrix * root[:, None], wanted * scale * root, rcond=None)[0]
    error = numpy.abs(matrix @ solution - wanted * scale)
    if error.max() < best_error:
        best_error, best = error.max(), solution
    weight *= error / error.max() + 1e-4
    weight /= weight.sum()

for power, coefficient in enumerate(best):
    print(f"t^{power}  {coefficient:.9g}")
print(f"largest error {best_error:.2g}")
