"""op_db's samples with conjugate and negative views in place of plain tensors: the same numbers, other memory.

python -m tests.conformance.math_bits conj mm add …        (neg …): each different failure
python -m tests.conformance.math_bits conj                  all operators that have the dtype
"""

import sys
import warnings

import torch

from tests.conformance import catalog, checks
from tests.reference import rebuild, seed_both

DTYPES = {"conj": torch.complex128, "neg": torch.float64}
SAMPLES = 4

# One or two of each kind: pointwise, with `out=`, reductions, products, views, indices, composites, factorisations.
CHOSEN = (
    "abs", "add", "sub", "mul", "div", "exp", "neg", "sgn", "pow", "where", "lerp", "addcmul", "clone", "contiguous", "sum", "mean",
    "prod", "cumsum", "norm", "linalg.vector_norm", "mm", "bmm", "addmm", "baddbmm", "matmul", "dot", "vdot", "mv", "outer", "einsum",
    "linalg.solve", "linalg.inv", "linalg.svdvals", "linalg.solve_triangular", "reshape", "view", "transpose", "select", "diagonal",
    "index_select", "index_put", "gather", "scatter", "masked_fill", "cat", "stack", "tril", "flip", "roll", "repeat", "fft.fft", "fft.irfft",
    "eq", "equal", "isclose", "full_like", "empty_like", "fill", "zero_", "cross", "kron", "tensordot", "trace",
)  # fmt: skip


def through_bit(value, bit):
    """Every tensor that can have the bit as a view that has it, with the same elements; leaves stay leaves."""
    if not isinstance(value, torch.Tensor):
        return rebuild(value, lambda v: through_bit(v, bit))
    if value.is_sparse or not (value.is_complex() if bit == "conj" else value.is_floating_point()):
        return value
    plain = value.detach()
    view = plain.conj_physical().conj() if bit == "conj" else plain.neg()._neg_view()
    return view.detach().requires_grad_(value.requires_grad)


def samples_of(info, bit, limit=SAMPLES):
    dtype = DTYPES[bit]
    if dtype not in info.supported_dtypes("cpu"):
        return []
    seed_both(0)
    found = [s for s in info.sample_inputs("cpu", dtype, requires_grad=info.supports_autograd) if checks.is_ours(s)]
    step = max(1, len(found) // limit)
    return [s.transform(lambda v: through_bit(v, bit)) for s in found[::step][:limit]]


def findings_of(name, bit, limit=SAMPLES):
    """What differs, for all variants of an operator."""
    findings = []
    for info in catalog.variants()[name]:
        for sample in samples_of(info, bit, limit):
            findings += checks.check_sample(info, sample, DTYPES[bit], deep=False)
    return [f for f in findings if f.kind == "FAIL"]


def main():
    bit, *names = sys.argv[1:]
    warnings.simplefilter("ignore")
    for name in names or [n for n in catalog.all_names() if checks.exists(n)]:
        seen = set()
        for f in findings_of(name, bit):
            if f.reason not in seen:
                seen.add(f.reason)
                print(f"{name:28} {f.form:12} {f.reason[:230]!r}", flush=True)
                if "-v" in sys.argv:
                    print(f.trace)


if __name__ == "__main__":
    main()
