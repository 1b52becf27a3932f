"""op_db's samples with dual numbers: the tangents of the results, and those of the gradients (forward over reverse).

python -m tests.conformance.forward mm add …     each different failure; without names: all operators of passing.txt
python -m tests.conformance.forward --limit 3    so many samples of each operator and dtype (default: all)
"""

import argparse
import warnings

import torch
import torch.autograd.forward_ad

import readtorch as rt
import readtorch.autograd.forward_ad
from tests.conformance import catalog, checks
from tests.conformance.translate import Missing, translate
from tests.reference import Outcome, assert_close, rebuild, seed_both, tensors_in

DTYPES = (torch.float64, torch.complex128)
FORMS = ("function", "in-place")
TOLERANCE = 1e-7  # of the largest element: in a product with an inverse, small elements are differences of large ones

# (operator, variant) whose tangents are not compared, and why.
NOT_COMPARED = {
    # Of several elements that go to one place the last is kept, and which one that is depends on the kernel.
    ("nn.functional.max_unpool1d", ""),
    ("nn.functional.max_unpool2d", ""),
    ("nn.functional.max_unpool3d", ""),
    (
        "cholesky_inverse",
        "",
    ),  # PyTorch's are off by 1e-5 next to the identity, and more elsewhere: see test_forward_ad.py
}
# Only over reverse: PyTorch's formula for a transposed matrix is that for the matrix itself.
NOT_OVER_REVERSE = {"triangular_solve"}
# Complex: PyTorch's overflow, and are nan.
ONLY_REAL = {"logcumsumexp"}


def samples_of(info, dtype, limit=None):
    """The samples with a tensor that forward mode would follow; `limit` of them, spread over the list."""
    if not info.supports_forward_ad or dtype not in info.supported_dtypes("cpu"):
        return []
    seed_both(0)
    found = [s for s in info.sample_inputs("cpu", dtype, requires_grad=True) if checks.is_ours(s)]
    found = [s for s in found if any(t.requires_grad for t in tensors_in(arguments(s)))]
    step = max(1, len(found) // limit) if limit else 1
    return found[::step][:limit]


def arguments(sample):
    return sample.input, sample.args, sample.kwargs


class Side:
    """A sample on one of the two implementations."""

    def __init__(self, library, function, process, args, random):
        self.library, self.function, self.process, self.args = library, function, process, args
        self.forward_ad = library.autograd.forward_ad
        self.random = random  # (tensor) -> what is drawn for one of its shape

    def duals(self, over_reverse):
        """The arguments with a dual for each tensor that requires grad; over reverse they still do."""
        made = {}

        def dual(value):
            if isinstance(value, (list, tuple, dict)):
                return rebuild(value, dual)
            if not isinstance(value, self.library.Tensor) or not value.requires_grad:
                return value
            if id(value) not in made:
                primal = value if over_reverse else value.detach()
                made[id(value)] = self.forward_ad.make_dual(primal, self.random(value))
            return made[id(value)]

        return dual(self.args), list(made.values())

    def tangents(self, over_reverse):
        """Of the results; over reverse of the gradients of their weighted sum."""
        seed_both(0)
        with self.forward_ad.dual_level():
            (first, rest, named), duals = self.duals(over_reverse)
            outputs = tensors_in(self.process(self.function(first, *rest, **named)))
            if over_reverse:
                outputs = self.gradients(outputs, duals)
            return [None if t is None else self.forward_ad.unpack_dual(t).tangent for t in outputs]

    def gradients(self, outputs, duals):
        followed = [t for t in outputs if t.requires_grad]
        if not followed:
            return []
        weights = [self.random(t) for t in followed]
        return self.library.autograd.grad(followed, duals, weights, allow_unused=True, create_graph=True)


def drawing():
    generator = torch.Generator().manual_seed(7)

    def theirs(t):
        return torch.randn(t.shape, dtype=t.dtype, generator=generator)

    def ours(t):
        return rt.tensor(
            torch.randn(
                tuple(t.shape), dtype=getattr(torch, str(t.dtype).rpartition(".")[2]), generator=generator
            ).numpy()
        )

    return theirs, ours


def sides(info, form, sample):
    def wrapped(function, wrapper):
        def call(first, *rest, **named):
            first = first.clone() if form.name == "in-place" else first
            return wrapper(function, first, *rest, **named)

        return call

    args, process, wrapper = arguments(sample), sample.output_process_fn_grad, info.gradcheck_wrapper
    yield Side(torch, wrapped(form.theirs, wrapper), process, args, drawing()[0])
    translated = checks.translate_all(args)
    yield Side(rt, wrapped(form.ours, translate(wrapper)), translate(process), translated, drawing()[1])


def check(info, form, sample, over_reverse):
    """AssertionError where the tangents are not the reference's. What it refuses is not compared."""
    theirs, ours = [Outcome(side.tangents, over_reverse) for side in sides(info, form, sample)]
    if theirs.error is not None:
        return []
    if ours.error is not None:
        raise AssertionError(f"raised {ours.describe_error()}") from ours.error
    assert len(ours.value) == len(theirs.value), f"{len(ours.value)} tangents instead of {len(theirs.value)}"
    for i, (a, b) in enumerate(zip(ours.value, theirs.value)):
        if a is None or b is None:  # which is zero
            other = b if a is None else a
            assert other is None or not bool(other.abs().sum()), f"tangent {i}: one is None, and the other is not zero"
        else:
            largest = float(b.detach().abs().max()) if b.numel() and not b.isnan().any() else 1.0
            assert_close(a, b, where=f"tangent {i}", rtol=TOLERANCE, atol=TOLERANCE * max(1.0, largest))
    return []


def calls_of(name, limit=None):
    """(info, form, sample, whether over reverse) for all variants of an operator."""
    for info in catalog.variants()[name]:
        if (info.name, info.variant_test_name) in NOT_COMPARED:
            continue
        forms = [f for f in checks.forms_of(info) if f.name in FORMS and not isinstance(f.ours, Missing)]
        for dtype in DTYPES[:1] if name in ONLY_REAL else DTYPES:
            for sample in samples_of(info, dtype, limit):
                for form in forms:
                    if form.name == "function" or not sample.broadcasts_input:
                        yield info, form, sample, False
                    if form.name == "function" and info.supports_fwgrad_bwgrad and name not in NOT_OVER_REVERSE:
                        yield info, form, sample, True


def findings_of(name, limit=None):
    """(the Findings of what differs, how many calls were compared)"""
    calls, found = list(calls_of(name, limit)), []
    for call in calls:
        info, form, sample, over_reverse = call
        what = f"{form.name}, over reverse" if over_reverse else form.name
        found += checks.guarded(what, checks.describe(sample), check, *call)
    return found, len(calls)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=int)
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    differing, calls = [], 0
    for name in options.names or catalog.passing_names():
        findings, count = findings_of(name, options.limit)
        calls += count
        for f in {f.reason: f for f in findings}.values():
            print(f"{name:28} {f.form:24} {f.reason[:200]!r} {f.sample[:90]}", flush=True)
            if options.v:
                print(f.trace)
        differing += [name] if findings else []
    print(f"{calls} calls; {len(differing)} operators differ: {' '.join(differing)}")


if __name__ == "__main__":
    main()
