"""Operators of op_db under vmap and its like, on PyTorch's own samples: python -m tests.functorch.op_db [--op NAME …] [-v]"""

import argparse
import dataclasses
import itertools
import sys
import traceback
import warnings

import torch

import readtorch as rt
from readtorch.aten.functorch import batched_fallback
from tests.conformance import catalog
from tests.conformance.checks import RANDOM, UNINITIALISED, UP_TO_PHASE
from tests.conformance.translate import Missing, translate
from tests.reference import to_readtorch, to_torch

B = 3
SAMPLES = 6

# They have no business under vmap, in PyTorch either: what they return is no tensor, or depends on the elements in its size.
NOT_BATCHED = {
    "allclose",
    "equal",
    "item",
    "nonzero",
    "unique",
    "unique_consecutive",
    "masked_select",
    "argwhere",
    "bincount",
}
LEFT_OUT = NOT_BATCHED | RANDOM | UNINITIALISED | UP_TO_PHASE


@dataclasses.dataclass
class Result:
    name: str
    failures: list
    compared: int = 0
    refused: int = 0  # samples that PyTorch's vmap refuses
    fallbacks: set = dataclasses.field(default_factory=set)


def samples_of(info, count=SAMPLES):
    dtypes = sorted(info.supported_dtypes("cpu"), key=str)
    dtype = torch.float64 if torch.float64 in dtypes or not dtypes else dtypes[0]
    torch.manual_seed(0)
    return itertools.islice(info.sample_inputs("cpu", dtype), count)


def batch(t, seed):
    """B examples like `t`: its elements in other orders."""
    if t.layout != torch.strided or t.is_nested:
        raise ValueError("strided tensors alone")
    examples = [t.detach()]
    for i in range(1, B):
        moved = t.detach().flatten().roll(i + seed).reshape(t.shape) if t.is_floating_point() else t.detach()
        examples.append(moved)
    return torch.stack(examples)


def ways(tensors):
    """Which of so many tensors are batched: all, and each alone."""
    yield (0,) * tensors
    if 1 < tensors <= 3:
        for i in range(tensors):
            yield tuple(0 if i == k else None for k in range(tensors))


def split(sample):
    """(the tensors of a sample, function that makes (args, kwargs) of others in their places, converted by a second argument)"""
    flatten, unflatten = torch.utils._pytree.tree_flatten, torch.utils._pytree.tree_unflatten
    leaves, spec = flatten(((sample.input, *sample.args), dict(sample.kwargs)))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def rebuild(tensors, convert):
        filled = [None if i in places else convert(leaf) for i, leaf in enumerate(leaves)]
        for i, t in zip(places, tensors):
            filled[i] = t
        return unflatten(filled, spec)

    return [leaves[i] for i in places], rebuild


def calls(info, sample):
    """(function of torch, function of readtorch, tensors, in_dims) for each way to batch a sample."""
    tensors, rebuild = split(sample)
    if not tensors:
        return
    ours = translate(info.op)

    def theirs_of(*given):
        args, kwargs = rebuild(given, lambda leaf: leaf)
        return tensors_of(info.op(*args, **kwargs))

    def ours_of(*given):
        args, kwargs = rebuild(given, to_readtorch)
        return tensors_of(ours(*args, **kwargs))

    for in_dims in ways(len(tensors)):
        given = [batch(t, k) if d == 0 else t.detach() for k, (t, d) in enumerate(zip(tensors, in_dims))]
        yield theirs_of, ours_of, given, in_dims


def tensors_of(result):
    """The tensors of what an operator returned, as a tuple."""
    if hasattr(result, "dtype"):
        return (result,)
    if isinstance(result, dict):
        result = tuple(result.values())
    return tuple([part for r in result for part in tensors_of(r)]) if isinstance(result, (tuple, list)) else ()


def vmapped(func, T, in_dims, given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return T.func.vmap(func, in_dims=in_dims, randomness="different")(*given)


def compare_vmap(name, samples=SAMPLES):
    """The Result of one operator: vmap of it on both sides."""
    result = Result(name, [])
    batched_fallback.met.clear()
    for info in catalog.variants()[name]:
        for sample in samples_of(info, samples):
            try:
                for call in calls(info, sample):
                    compare_call(result, *call)
            except Missing as missing:
                result.failures.append(f"missing {missing}")
    result.fallbacks = set(batched_fallback.met)
    return result


def compare_call(result, theirs, ours, given, in_dims):
    try:
        expected = vmapped(theirs, torch, in_dims, given)
    except Exception:
        result.refused += 1
        return
    try:
        got = vmapped(ours, rt, in_dims, [to_readtorch(t) for t in given])
        assert_same(got, expected)
        result.compared += 1
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        last = next((f for f in reversed(frames) if "readtorch/" in f.filename), frames[-1])
        shapes = [tuple(t.shape) for t in given]
        result.failures.append(
            f"{in_dims} {shapes}: {type(error).__name__}: {str(error)[:160]!r} at {last.filename.rpartition('/')[2]}:{last.lineno}"
        )


def assert_same(got, expected):
    assert len(got) == len(expected), f"{len(got)} results instead of {len(expected)}"
    for a, b in zip(got, expected):
        a = to_torch(a)
        assert a.dtype == b.dtype, f"{a.dtype} instead of {b.dtype}"
        assert a.shape == b.shape, f"{tuple(a.shape)} instead of {tuple(b.shape)}"
        torch.testing.assert_close(a, b.detach(), rtol=1e-6, atol=1e-8, equal_nan=True, check_stride=False)


def core_names():
    return [name for name in catalog.core_names() if name in catalog.variants() and name not in LEFT_OUT]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--op", nargs="+")
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    wrong, looped = [], []
    for name in options.op or core_names():
        result = compare_vmap(name)
        if result.failures:
            wrong.append(name)
            print(f"{name}: {len(result.failures)} of {result.compared + len(result.failures)} wrong", flush=True)
            for failure in result.failures if options.v else result.failures[:1]:
                print(f"    {failure}")
        if result.fallbacks:
            looped.append(name)
            print(f"{name}: by the fallback: {sorted(result.fallbacks)}")
    print(f"{len(wrong)} wrong, {len(looped)} by the fallback")


if __name__ == "__main__":
    sys.exit(main())
