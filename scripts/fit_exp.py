#!/usr/bin/env python3
"""Makes the polynomial of src/kernel/exp_table_body.inc. Needs numpy.

Looks for c2 and c3 with  exp(f) - 1 ~ f + f*f*(c2 + c3*f)  on |f| <= ln(2)/16 that make the largest
error smallest: weighted least squares, where each round gives more weight to the places of the
largest errors (C. Lawson's method).
"""

import numpy

LIMIT = numpy.log(2) / 16
POINTS, ROUNDS = 4000, 300

f = LIMIT * numpy.cos(numpy.pi * (numpy.arange(POINTS) + 0.5) / POINTS)
wanted = numpy.expm1(f) - f
matrix = numpy.stack([f**2, f**3], axis=1)

weight = numpy.ones(POINTS)
best_error, best = numpy.inf, None
for _ in range(ROUNDS):
    root = numpy.sqrt(weight)
    solution = numpy.linalg.lstsq(matrix * root[:, None], wanted * root, rcond=None)[0]
    error = numpy.abs(matrix @ solution - wanted)
    if error.max() < best_error:
        best_error, best = error.max(), solution
    weight *= error / error.max() + 1e-4
    weight /= weight.sum()

for power, coefficient in zip((2, 3), best):
    print(f"f^{power}  {coefficient:.9g}")
print(f"largest error {best_error * 2**24:.2f} * 2^-24")
