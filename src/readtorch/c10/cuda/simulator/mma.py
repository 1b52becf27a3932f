"""`mma`: the 32 lanes of a warp bring their registers, and one small matrix product comes of them: D = A · B + C.

Note [ Fragments ] On the chip these are the tensor cores, and PTX's `mma.sync.aligned` is the way to them. No lane holds
a matrix: each brings four registers of A (16 × k), two of B (k × 8) and four float32 of C (16 × 8), and gets four of D.
A register has 32 bits: one TF32 number, or two of 16 bits, the lower half first; so k is 8 or 16. With
`group, t = divmod(lane, 4)` and `n` numbers in a register,

    register r of A   row group + 8 · (r % 2), columns from n · (t + 4 · (r // 2)) on
    register r of B   rows from n · (t + 4 · r) on, column group
    number i of C, D  row group + 8 · (i // 2), column 2 · t + i % 2

which is what the tables "Matrix Fragments for mma.m16n8k8" and "… mma.m16n8k16" of the PTX ISA say. TF32 keeps 10 of
float32's 23 bits of fraction: the other 13 are not looked at. Products and sums are exact here and rounded once; the
ISA promises float32's precision for the sums and no order.

All 32 lanes must be there, at one place of the program: see Note [ The lanes of a mask ].
"""

import ml_dtypes
import numpy as np

from .errors import InactiveLane
from .schedule import WARP, whereabouts

TF32_BITS = np.uint32(0xFFFFE000)


def as_tf32(bits):
    return (bits & TF32_BITS).view(np.float32)


READ = {
    "m16n8k8.tf32": as_tf32,
    "m16n8k16.bf16": lambda bits: bits.view(ml_dtypes.bfloat16),
    "m16n8k16.f16": lambda bits: bits.view(np.float16),
}


def numbers_in(kind, registers):
    """What registers (floats of 32 bits or their bits as integers) hold: an array (registers, numbers in each)."""
    bits = [r.view(np.uint32) if isinstance(r, np.float32) else np.uint32(int(r) & 0xFFFFFFFF) for r in registers]
    return READ[kind](np.array(bits)).reshape(len(bits), -1).astype(np.float64)


def multiply(kind, group):
    """Give each of the 32 lanes its part of D. Its waits.value is (registers of A, of B, numbers of C)."""
    if len(group) < WARP:
        raise InactiveLane(f"mma.{kind} needs {WARP} lanes, and this warp has {len(group)}. {whereabouts(group[0])}")
    n = 1 if kind == "m16n8k8.tf32" else 2
    a, b, c = np.zeros((16, 8 * n)), np.zeros((8 * n, 8)), np.zeros((16, 8))
    for lane in group:
        row, t = divmod(lane.lane, 4)
        of_a, of_b, of_c = lane.waits.value
        for r, numbers in enumerate(numbers_in(kind, of_a)):
            first = n * (t + 4 * (r // 2))
            a[row + 8 * (r % 2), first : first + n] = numbers
        for r, numbers in enumerate(numbers_in(kind, of_b)):
            first = n * (t + 4 * r)
            b[first : first + n, row] = numbers
        c[row, 2 * t : 2 * t + 2], c[row + 8, 2 * t : 2 * t + 2] = of_c[:2], of_c[2:]
    d = (a @ b + c).astype(np.float32)
    for lane in group:
        row, t = divmod(lane.lane, 4)
        lane.answer = (*d[row, 2 * t : 2 * t + 2], *d[row + 8, 2 * t : 2 * t + 2])
