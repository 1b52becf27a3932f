"""One sample on both implementations: every form in which the operator can be called, all that shows.

A check returns the list of its Findings. A Finding is a failure (kind "FAIL") or something worth knowing that
does not count against the operator: strides that differ where both are contiguous or neither is ("strides"),
an error of the right type whose text matches op_db's pattern but is not the reference's own ("wording"), an
alias that is missing or differs ("alias").
"""

import dataclasses
import re
import traceback

import torch

import readtorch as rt
from tests.conformance import catalog
from tests.conformance.translate import Missing, is_torch_object, look_up, translate, translate_object
from tests.reference import (
    Outcome,
    assert_close,
    assert_same_aliasing,
    assert_same_grad_fn,
    assert_same_gradients,
    own_copy,
    rebuild,
    same_strides,
    seed_both,
    tensors_in,
    to_readtorch,
    to_torch,
)

NOTES = ("strides", "wording", "alias", "bases")

GRAD_DTYPES = (torch.float64, torch.complex128)

# Their numbers come from the generator: not one bit may differ.
RANDOM = {
    "rand_like",
    "randn_like",
    "randn",
    "rand",
    "randint",
    "randint_like",
    "normal",
    "bernoulli",
    "multinomial",
    "uniform",
    "exponential",
    "nn.functional.dropout",
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
}
UNINITIALISED = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}
# Their factors are only determined up to signs or phases; op_db's output_process_fn_grad removes these.
UP_TO_PHASE = {"svd_lowrank", "pca_lowrank", "linalg.svd", "linalg.eigh", "linalg.eig", "svd", "qr", "linalg.qr"}

# Which of several equal elements comes first is not specified unless sort is asked to be stable. Name -> where
# the argument `dim` stands.
RANKING = {"sort": 0, "argsort": 0, "topk": 1}
# Nor which of them is picked where one is.
PICKING = {"kthvalue": 1, "mode": 0}

# Sums of products in another order than the reference's: rtol, atol.
TOLERANCES = {torch.float32: (1e-5, 2e-5), torch.complex64: (1e-5, 2e-5)}


@dataclasses.dataclass
class Finding:
    kind: str  # FAIL, strides, wording or alias
    form: str  # function, method, in-place, out=, operator, alias, gradient, error input
    reason: str
    sample: str = ""
    trace: str = ""
    dtype: str = ""
    number: int = 0  # of the sample within a run


@dataclasses.dataclass
class Form:
    """One way of calling an operator, on both sides."""

    name: str
    theirs: object
    ours: object


def forms_of(info):
    """The forms that the OpInfo lists. For a name that readtorch lacks, ours is a Missing."""
    function = Form("function", info.op, _ours(info.op, info.name.removeprefix("torch.")))
    methods = [
        ("method", info.method_variant),
        ("in-place", info.inplace_variant),
        ("operator", info.operator_variant),
        ("in-place operator", info.inplace_operator_variant),
    ]
    return [function] + [Form(name, theirs, _ours(theirs)) for name, theirs in methods if theirs is not None]


def _ours(theirs, path=None):
    try:
        if path and _resolves_to(path, theirs):
            return look_up(rt, path)
        return translate(theirs)
    except Missing as missing:
        return missing


def _resolves_to(path, theirs):
    try:
        return look_up(torch, path) is theirs
    except Missing:
        return False


def exists(name):
    """Whether readtorch has an operator of op_db, in the form of a function."""
    return not isinstance(forms_of(catalog.variants()[name][0])[0].ours, Missing)


def is_public(name):
    """Whether readtorch has a function or a method under the name that op_db gives to an operator."""
    for path in (name.removeprefix("torch."), f"Tensor.{name}"):
        try:
            return callable(look_up(rt, path))  # `torch.chalf` is a dtype
        except (Missing, AttributeError):
            continue
    return False


# The checks


def check_sample(info, sample, dtype, deep=True):
    """All forms of one sample input. `deep`: also with other strides, and out= of another size or dtype."""
    findings = []
    for form in forms_of(info):
        if form.name.startswith("in-place") and sample.broadcasts_input:
            continue
        findings += guarded(form.name, describe(sample), check_form, info, form, sample, dtype)
    if deep:
        strided = sample.noncontiguous()
        findings += guarded("non-contiguous", describe(strided), check_form, info, forms_of(info)[0], strided, dtype)
    if info.supports_out:
        findings += guarded("out=", describe(sample), _check_out, info, sample, dtype, deep)
    return findings


def check_aliases(info, sample):
    """The other names of the operator give the same result."""
    findings = []
    for alias in info.aliases:
        form = Form("alias", alias.op, _ours(alias.op, alias.name))
        found = guarded(f"alias {alias.name}", describe(sample), check_form, info, form, sample, torch.float32)
        findings += [dataclasses.replace(f, kind="alias" if f.kind == "FAIL" else f.kind) for f in found]
    return findings


def check_error_input(info, error_input):
    """The same type of error, and words that match op_db's pattern."""
    sample = error_input.sample_input
    return guarded("error input", describe(sample), _check_error, info, sample, error_input.error_regex)


def guarded(form, sample, check, *args):
    """The findings of a check, an AssertionError being a failure, and any other exception our crash."""
    try:
        found = check(*args)
    except AssertionError as error:
        found = [Finding("FAIL", form, str(error), trace=_trace(error.__cause__))]
    except Missing as error:
        found = [Finding("FAIL", form, f"missing: {error}")]
    except Exception as error:
        found = [Finding("FAIL", form, f"{type(error).__name__}: {error}", trace=_trace(error))]
    for finding in found:
        finding.form, finding.sample = finding.form or form, str(sample)
    return found


def check_form(info, form, sample, dtype):
    if isinstance(form.ours, Missing):
        raise form.ours
    in_place = form.name.startswith("in-place")
    their_args = (sample.input, sample.args, sample.kwargs)
    if in_place:  # their own copy to change; a leaf that requires grad must not be changed itself
        their_args = own_copy(their_args)
    our_args = translate_all(their_args)
    theirs, ours = _call(form.theirs, their_args, in_place), _call(form.ours, our_args, in_place)
    if theirs.error is not None:
        return compare_errors(ours, theirs, None)
    if ours.error is not None:
        raise AssertionError(f"raised {ours.describe_error()}") from ours.error
    return _compare_values(info, sample, dtype, ours.value, theirs.value, our_args, their_args)


def _call(function, args, in_place):
    seed_both(0)
    first, rest, named = args
    if in_place and isinstance(first, (torch.Tensor, rt.Tensor)):
        return Outcome(lambda: function(first.clone() if first.requires_grad else first, *rest, **named))
    return Outcome(function, first, *rest, **named)


def _compare_values(info, sample, dtype, ours, theirs, our_args, their_args):
    close = _tolerance(info, dtype)
    process = translate(sample.output_process_fn_grad)
    if info.name in UP_TO_PHASE:
        assert_close(_shapes_and_dtypes(ours), _shapes_and_dtypes(theirs))
        compared = process(ours), sample.output_process_fn_grad(theirs)
    else:
        args = (sample.input, sample.args, sample.kwargs)
        compared = what_is_ranked(info, args, ours), what_is_ranked(info, args, theirs)
    if info.name in UNINITIALISED:
        assert_close(_shapes_and_dtypes(ours), _shapes_and_dtypes(theirs))
    else:
        assert_close(*compared, **close)
        assert_close(our_args, their_args, where="inputs afterwards", **close)
    findings = compare_strides(ours, theirs)
    assert_same_aliasing(ours, theirs, our_args, their_args)
    if dtype in GRAD_DTYPES and info.supports_autograd:
        assert_same_grad_fn(ours, theirs)
        assert_same_gradients(
            process(ours),
            sample.output_process_fn_grad(theirs),
            our_args,
            their_args,
            orders=2 if info.supports_gradgrad else 1,
            **close,
        )
    return findings


def what_is_ranked(info, args, result):
    """A ranking's result with the elements that its indices pick in their place; each may be picked once."""
    first, rest, named = args
    if info.name in PICKING and first.dim():
        return (result[0], picked_elements(info, args, result))
    if info.name not in RANKING or named.get("stable"):
        return result
    indices = to_torch(result if info.name == "argsort" else result[1])
    place = RANKING[info.name]
    dim = rest[place] if len(rest) > place else named.get("dim", -1)
    ordered = indices.sort(dim).values
    assert not indices.dim() or (ordered.diff(dim=dim) > 0).all(), "an index appears twice"
    picked = first.detach().gather(dim, indices)
    picked = to_readtorch(picked) if isinstance(tensors_in(result)[0], rt.Tensor) else picked
    return picked if info.name == "argsort" else (result[0], picked)


def picked_elements(info, args, result):
    """The elements at the indices that a choice along one dimension returns."""
    first, rest, named = args
    place = PICKING[info.name]
    dim = rest[place] if len(rest) > place else named.get("dim", -1)
    indices = to_torch(result[1])
    kept = indices.dim() == first.dim()
    picked = first.detach().gather(dim, indices if kept else indices.unsqueeze(dim))
    picked = picked if kept else picked.squeeze(dim)
    return to_readtorch(picked) if isinstance(result[1], rt.Tensor) else picked


def _shapes_and_dtypes(value):
    return [(tuple(t.shape), str(t.dtype).rpartition(".")[2]) for t in tensors_in(value)]


def compare_strides(ours, theirs):
    for i, (a, b) in enumerate(zip(tensors_in(ours), tensors_in(theirs))):
        assert a.is_contiguous() == b.is_contiguous(), (
            f"result {i} has strides {a.stride()} instead of {b.stride()} (shape {tuple(b.shape)})"
        )
        if not same_strides(a, b):
            text = f"result {i}: {a.stride()} instead of {b.stride()}, shape {tuple(b.shape)}"
            return [Finding("strides", "", text)]
    return []


def _tolerance(info, dtype):
    if info.name in RANDOM:
        return {"exact": True}
    return tolerance_of(dtype)


def tolerance_of(dtype):
    rtol, atol = TOLERANCES.get(dtype, (None, None))
    return {"rtol": rtol, "atol": atol}


def _check_out(info, sample, dtype, deep):
    """out= is filled and returned; with another size it is resized, with another dtype perhaps refused."""
    function = forms_of(info)[0]
    if isinstance(function.ours, Missing):
        raise function.ours
    args = _detached((sample.input, sample.args, sample.kwargs))
    expected = _call(function.theirs, args, False)
    outputs = tensors_in(expected.value)
    if expected.error is not None or not outputs:
        return []
    tries = [[torch.full_like(o, 7) for o in outputs]]
    if deep:
        tries.append([o.new_full((1, *o.shape, 2), 7) for o in outputs])
        tries.append([torch.full_like(o, 1, dtype=torch.int64) for o in outputs])
    return [finding for outs in tries for finding in _compare_out(info, function, args, outs, dtype)]


def _compare_out(info, function, args, outs, dtype):
    their_out = outs[0] if len(outs) == 1 else tuple(outs)
    our_out = to_readtorch(their_out)
    our_args = translate_all(args)
    theirs = _call(function.theirs, (args[0], args[1], {**args[2], "out": their_out}), False)
    ours = _call(function.ours, (our_args[0], our_args[1], {**our_args[2], "out": our_out}), False)
    if theirs.error is not None:
        return compare_errors(ours, theirs, None)
    if ours.error is not None:
        raise AssertionError(f"raised {ours.describe_error()}") from ours.error
    if info.name not in UNINITIALISED and info.name not in UP_TO_PHASE:
        assert_close(
            what_is_ranked(info, args, our_out),
            what_is_ranked(info, args, their_out),
            where="out",
            **_tolerance(info, dtype),
        )
    for a, b, c, d in zip(*map(tensors_in, (ours.value, our_out, theirs.value, their_out))):
        assert (a is b) == (c is d), "the result is not the tensor passed as out="
    return compare_strides(our_out, their_out)


def _detached(value):
    return value.detach() if isinstance(value, torch.Tensor) else rebuild(value, _detached)


def _check_error(info, sample, pattern):
    form = forms_of(info)[0]
    if isinstance(form.ours, Missing):
        raise form.ours
    their_args = own_copy((sample.input, sample.args, sample.kwargs))  # op_db's error inputs share tensors
    our_args = translate_all(their_args)
    theirs, ours = _call(form.theirs, their_args, False), _call(form.ours, our_args, False)
    if theirs.error is None:
        return []
    return compare_errors(ours, theirs, pattern)


def compare_errors(ours, theirs, pattern):
    assert ours.error is not None, f"no error instead of {theirs.describe_error()}"
    if type(ours.error).__name__ != type(theirs.error).__name__:
        raise AssertionError(f"{ours.describe_error()} instead of {theirs.describe_error()}") from ours.error
    if _without_addresses(ours.error) == _without_addresses(theirs.error):
        return []
    text = f"{str(ours.error)!r} instead of {str(theirs.error)!r}"
    if pattern and re.search(pattern, str(theirs.error)) and not re.search(pattern, str(ours.error)):
        raise AssertionError(f"wording: {text}") from ours.error
    return [Finding("wording", "", text)]


def _without_addresses(error):
    return re.sub(r" at 0x[0-9a-f]+", "", str(error))


# Samples


def translate_all(args):
    """(input, args, kwargs) for readtorch; tensors that share a storage share it there too."""
    share = {}

    def walk(value):
        if is_torch_object(value):
            if id(value) not in share:
                share[id(value)] = translate_object(value, walk)
            return share[id(value)]
        if isinstance(value, (list, tuple, dict)) and not isinstance(value, torch.Size):
            return rebuild(value, walk)
        if callable(value) and not isinstance(value, torch.Tensor):
            return translate(value)
        return to_readtorch(value, share)

    return walk(args)


SUPPORTED_DTYPES = {
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
}


MOST_DIMS = 64  # of a NumPy array, which carries the numbers from one side to the other


def is_ours(sample):
    """Whether a sample only uses what readtorch has: dense CPU tensors of the supported dtypes."""
    return only_ours((sample.input, sample.args, sample.kwargs))


def only_ours(value):
    if isinstance(value, torch.Tensor):
        dense = value.layout == torch.strided and value.device.type == "cpu"
        return dense and value.dtype in SUPPORTED_DTYPES and value.dim() <= MOST_DIMS
    if isinstance(value, torch.dtype):
        return value in SUPPORTED_DTYPES
    if isinstance(value, torch.layout):
        return value == torch.strided
    if isinstance(value, torch.device):
        return value.type == "cpu"
    if isinstance(value, dict):
        return all(map(only_ours, value.values()))
    return all(map(only_ours, value)) if isinstance(value, (list, tuple)) else True


def describe(sample):
    """A call in one line: shapes and dtypes instead of numbers."""
    return describe_arguments((sample.input, *sample.args), sample.kwargs)


def describe_arguments(args, kwargs):
    named = [f"{k}={_describe(v)}" for k, v in kwargs.items()]
    return f"({', '.join([*map(_describe, args), *named])})"


def _describe(value):
    if isinstance(value, torch.Tensor):
        short = str(value.dtype).removeprefix("torch.").replace("float", "f").replace("int", "i")
        layout = "" if value.is_contiguous() else f" strides {list(value.stride())}"
        return f"{short}{list(value.shape)}{layout}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(_describe, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return repr(value)


def _trace(error):
    """The innermost frames of our own code."""
    if error is None:
        return ""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/tests/" not in f.filename]
    return "\n".join(f"{f.filename}:{f.lineno} in {f.name}: {f.line}" for f in frames[-4:])
