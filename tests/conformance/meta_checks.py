"""One sample input on the Meta backend: what each form of an operator gives there, beside what it gives on the CPU.

Every call is made four times: by torch and by readtorch, on the CPU and on meta. Ours on meta must show what ours on the CPU
shows, except the numbers: shape, strides and dtype, what is a view of what, whether it requires grad and through which node. Where
torch's two backends agree with each other ours must agree with them, and where torch raises on meta we raise the same.
"""

import dataclasses
import itertools

import torch

import readtorch as rt
from readtorch.c10.storage_impl import address_of
from tests.conformance import checks
from tests.conformance.checks import Finding, Missing, forms_of, tensors_in, translate, translate_all
from tests.reference import Outcome, own_copy, rebuild

META = "meta"

DTYPES = (torch.float32, torch.int64, torch.complex64, torch.bool, torch.bfloat16)
GRAD_DTYPES = (torch.float32, torch.complex64)

# Kinds of findings beside FAIL: torch has no meta for this sample;
NOT_SUPPORTED = "not supported"
# and worth knowing: ours answers where torch raises; ours raises what torch raises on the CPU alone; strides that are those of
# the CPU and not torch's; an error in other words.
NOTES = ("more", "sooner", "strides", "wording")


# Inputs


def on_meta(args):
    """`args` with its tensors, devices and names of devices on meta; strides stay, and what was one tensor is one tensor."""
    moved = {}

    def move(value):
        if isinstance(value, (torch.Tensor, rt.Tensor)):
            if id(value) not in moved:
                moved[id(value)] = _moved(value)
            return moved[id(value)]
        if isinstance(value, (torch.device, rt.device)):
            return type(value)(META)
        if isinstance(value, str) and value == "cpu":
            return META
        return value if isinstance(value, torch.Size) else rebuild(value, move)

    return move(args)


def _moved(tensor):
    """`to` keeps the strides of a tensor without gaps and overlap; the others are made with theirs."""
    moved = tensor.detach().to(META)
    if moved.stride() != tensor.stride():
        library = torch if isinstance(tensor, torch.Tensor) else rt
        moved = library.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device=META)
    return moved.requires_grad_(tensor.requires_grad)


def layouts_of(sample):
    """Name -> the sample with its tensors laid out otherwise in memory; those that change any."""
    made = {}
    for name, lay_out in LAYOUTS.items():
        changed = []

        def other(tensor, lay_out=lay_out, changed=changed):
            laid = lay_out(tensor.detach())
            changed.append(laid.stride() != tensor.stride())
            return laid.requires_grad_(tensor.requires_grad)

        relaid = sample.transform(lambda value: other(value) if isinstance(value, torch.Tensor) else value)
        if any(changed):
            made[name] = relaid
    return made


def permuted(tensor):
    """The same elements, the first dimension innermost in memory."""
    backwards = tuple(reversed(range(tensor.dim())))
    return tensor.permute(backwards).contiguous().permute(backwards)


def channels_last(tensor):
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return tensor.contiguous(memory_format=formats.get(tensor.dim(), torch.contiguous_format))


def expanded(tensor):
    """The first of the last dimension's elements in all places."""
    return tensor[..., :1].clone().expand(tensor.shape) if tensor.dim() > 1 and tensor.shape[-1] else tensor


def sliced(tensor):
    """Every second element of one twice as long."""
    if tensor.dim() < 2:
        return tensor
    wide = tensor.new_zeros((*tensor.shape[:-1], 2 * tensor.shape[-1]))
    wide[..., ::2] = tensor
    return wide[..., ::2]


LAYOUTS = {"permuted": permuted, "channels last": channels_last, "expanded": expanded, "sliced": sliced}


# What shows of a tensor


@dataclasses.dataclass
class Shown:
    """All that shows of one result but its numbers."""

    shape: tuple
    dtype: str
    strides: tuple  # None in their place where a dimension has one element; none at all where there is no element
    requires_grad: bool
    grad_fn: str
    is_leaf: bool
    is_view: bool
    is_input: list  # numbers of the inputs that it is
    shares: list  # numbers of the inputs whose memory it shows
    version: int


ALL = ("shape", "dtype", "strides", "requires_grad", "grad_fn", "is_leaf", "is_view", "is_input", "shares", "version")
OF_A_NEW_TENSOR = ALL[:-1]  # how often a kernel wrote to it on the way is its own affair
OF_A_GRADIENT = ("shape", "dtype", "strides")
LIKE_TORCH = ("shape", "dtype")


def show(value, inputs=()):
    inputs = tensors_in(inputs)
    return [_show(tensor, inputs) for tensor in tensors_in(value)]


def _show(tensor, inputs):
    strides = tuple(None if n == 1 else s for n, s in zip(tensor.shape, tensor.stride()))
    ours = isinstance(tensor, rt.Tensor)
    return Shown(
        tuple(tensor.shape),
        str(tensor.dtype).rpartition(".")[2],
        strides if tensor.numel() else (),
        tensor.requires_grad,
        tensor.grad_fn.name() if tensor.grad_fn is not None else "none",
        tensor.is_leaf,
        tensor._base is not None,
        [i for i, other in enumerate(inputs) if other is tensor],
        [i for i, other in enumerate(inputs) if ours and other._counter is tensor._counter],
        tensor._version,
    )


def assert_shows(found, expected, names, what, whose):
    assert len(found) == len(expected), f"{len(found)} {what}s instead of {len(expected)}, {whose}"
    for i, (a, b) in enumerate(zip(found, expected)):
        for name in names:
            have, want = getattr(a, name), getattr(b, name)
            number = f" {i}" if len(found) > 1 else ""
            assert have == want, f"{what}{number}: {name} {have} instead of {want}, {whose} (shape {b.shape})"


# The four calls


@dataclasses.dataclass
class Four:
    """What one call did: torch's and ours, on the CPU and on meta. Inputs are kept, which a call may change."""

    theirs_cpu: Outcome
    theirs_meta: Outcome
    ours_cpu: Outcome
    ours_meta: Outcome
    inputs: tuple  # in the same order


def call_four(form, args, in_place=False):
    """Raises Missing where readtorch lacks the operator. Torch's inputs are copies; one meta input of ours may fail to be made."""
    if isinstance(form.ours, Missing):
        raise form.ours
    theirs = own_copy(args)
    ours = translate_all(theirs)
    inputs = (theirs, on_meta(theirs), ours, on_meta(ours))
    functions = (form.theirs, form.theirs, form.ours, form.ours)
    return Four(*(_call(f, given, in_place) for f, given in zip(functions, inputs)), inputs)


def _call(function, args, in_place):
    """Nothing is seeded, for numbers do not matter here."""
    first, rest, named = args
    if in_place and getattr(first, "requires_grad", False):  # a leaf must not be changed itself
        return Outcome(lambda: function(first.clone(), *rest, **named))
    return Outcome(function, first, *rest, **named)


def is_supported(outcome):
    """Whether a call of torch's worked and gave meta tensors, or none."""
    return outcome.error is None and all(t.device.type == META for t in tensors_in(outcome.value))


def check_form(form, args, in_place=False):
    """(findings of one call, its four outcomes or None where there is nothing more to compare)"""
    four = call_four(form, args, in_place)
    if four.theirs_cpu.error is not None and four.theirs_meta.error is not None:
        if four.ours_meta.error is None and four.ours_cpu.error is None:  # what ours is on the CPU, conformance judges
            return [
                Finding("more", "", f"answers on both where torch raises {four.theirs_meta.describe_error()}")
            ], None
        return checks.compare_errors(four.ours_meta, four.theirs_meta, None), None
    if not is_supported(four.theirs_meta):
        return check_refusal(four), None
    if four.ours_cpu.error is not None and four.ours_meta.error is not None:
        assert type(four.ours_meta.error) is type(four.ours_cpu.error), f"raises {four.ours_meta.describe_error()}"
        return [Finding("sooner", "", f"what ours refuses on the CPU, too: {four.ours_meta.describe_error()}")], None
    if four.ours_meta.error is not None:
        raise AssertionError(f"raises {four.ours_meta.describe_error()}") from four.ours_meta.error
    return compare(four, ALL if in_place else OF_A_NEW_TENSOR), four


def check_refusal(four):
    """Torch raises on meta, or answers with tensors that are not there. What depends on numbers must raise the same here."""
    findings = [Finding(NOT_SUPPORTED, "", four.theirs_meta.describe_error())]
    if four.theirs_meta.error is None:
        return findings
    if four.ours_meta.error is None:
        return findings + [Finding("more", "", f"answers where torch raises {four.theirs_meta.describe_error()}")]
    return findings + checks.compare_errors(four.ours_meta, four.theirs_meta, None)


def compare(four, names):
    """Ours on meta beside ours on the CPU, and beside torch's where torch's agree with each other."""
    value, inputs = four.ours_meta.value, four.inputs
    found = show(value, inputs[3])
    for tensor in tensors_in(value):
        assert tensor.device.type == META, f"a result on {tensor.device}"
        assert has_no_memory(tensor), "a result with memory of its own"
    if four.ours_cpu.error is None:
        expected = show(four.ours_cpu.value, inputs[2])
        assert_shows(found, expected, names, "result", "as on the CPU")
        changed = show(inputs[3], inputs[3]), show(inputs[2], inputs[2])
        assert_shows(*changed, ALL, "input", "as on the CPU")
        if not found:
            assert four.ours_meta.value == four.ours_cpu.value, f"{four.ours_meta.value!r}"
    return compare_with_torch(found, four, "result")


def compare_with_torch(found, four, what):
    """Shapes and dtypes must be torch's on meta, unless they are not those that torch has on the CPU. Other strides are noted."""
    expected = show(four.theirs_meta.value)
    if four.theirs_cpu.error is not None:
        assert_shows(found, expected, LIKE_TORCH, what, "as torch's on meta")
        return []
    on_cpu = show(four.theirs_cpu.value)
    if [(one.shape, one.dtype) for one in on_cpu] != [(one.shape, one.dtype) for one in expected]:
        return []
    if four.ours_cpu.error is None and [one.shape for one in show(four.ours_cpu.value)] != [
        one.shape for one in on_cpu
    ]:
        return [Finding("other", "", f"{what}: other shapes than torch's, on the CPU as on meta")]
    assert_shows(found, expected, LIKE_TORCH, what, "as torch's on meta")
    strides, theirs, theirs_on_cpu = ([one.strides for one in side] for side in (found, expected, on_cpu))
    if strides == theirs or theirs != theirs_on_cpu:
        return []
    return [Finding("strides", "", f"{what}: {strides} instead of torch's {theirs}")]


def has_no_memory(tensor):
    """Whether the tensor's array is at an address that no process has."""
    return tensor.numel() == 0 or address_of(tensor._array) >> 48


# Cases


def cases_of(info, sample, dtype):
    """(name of the form, function that returns findings) for each form of one sample."""
    args = (sample.input, sample.args, sample.kwargs)
    forms = {form.name: form for form in forms_of(info)}
    yield "function", lambda: check_function(info, forms["function"], sample, args, dtype)
    if "in-place" in forms and not sample.broadcasts_input:
        yield "in-place", lambda: check_in_place(forms["in-place"], args)
    if info.supports_out:
        yield "out=", lambda: check_out(forms["function"], args, info.name not in WRITES_BEYOND)


def check_function(info, form, sample, args, dtype):
    findings, four = check_form(form, args)
    if four is not None and dtype in GRAD_DTYPES and info.supports_autograd:
        findings += check_backward(four, sample.output_process_fn_grad)
    return findings


def check_in_place(form, args):
    return check_form(form, args, in_place=True)[0]


# With an output that is laid out otherwise PyTorch's own write beyond its memory: the process ends, now or later.
WRITES_BEYOND = {"tril", "triu", "lu_unpack", "linalg.lu"}


def check_out(form, args, otherwise):
    """out= of the right size, laid out otherwise (where that is wanted), of other sizes, of another dtype."""
    plain = _detached(args)
    usual = _call(form.theirs, own_copy(plain), False)
    outputs = tensors_in(usual.value)
    if usual.error is not None or not outputs:
        return []
    tries = (
        [torch.empty_like(o) for o in outputs],
        *([[permuted(torch.empty_like(o)) for o in outputs]] if otherwise else []),
        [o.new_empty((1, *o.shape, 2)) for o in outputs],
        [o.new_empty(0) for o in outputs],
        [torch.empty_like(o, dtype=torch.int64) for o in outputs],
    )
    return list(itertools.chain.from_iterable(_check_out(form, plain, outs) for outs in tries))


def _detached(value):
    return value.detach() if isinstance(value, torch.Tensor) else rebuild(value, _detached)


def _check_out(form, args, outs):
    first, rest, named = args
    given = outs[0] if len(outs) == 1 else tuple(outs)
    findings, _ = check_form(form, (first, rest, {**named, "out": given}))
    return findings


def check_backward(four, process):
    """Gradients of all inputs that require grad, for cotangents of ones."""
    sides = (four.theirs_cpu, four.theirs_meta, four.ours_cpu, four.ours_meta)
    if any(side.error is not None for side in sides):
        return []
    processes = (process, process, translate(process), translate(process))
    gradients = Four(*map(_gradients, sides, processes, four.inputs), four.inputs)
    if not is_supported(gradients.theirs_meta) or not tensors_in(gradients.theirs_cpu.value):
        return []
    if gradients.ours_meta.error is not None:
        error = gradients.ours_meta.error
        raise AssertionError(f"backward raises {gradients.ours_meta.describe_error()}") from error
    found = show(gradients.ours_meta.value)
    if gradients.ours_cpu.error is None:
        expected = show(gradients.ours_cpu.value)
        torchs = [[one.strides for one in show(side.value)] for side in (gradients.theirs_cpu, gradients.theirs_meta)]
        names = OF_A_GRADIENT if torchs[0] == torchs[1] else LIKE_TORCH
        assert_shows(found, expected, names, "gradient", "as on the CPU")
    return compare_with_torch(found, gradients, "gradient")


def _gradients(side, process, inputs):
    library = torch if isinstance((tensors_in(side.value) or [None])[0], torch.Tensor) else rt
    leaves = [t for t in tensors_in(inputs) if t.requires_grad]

    def gradients():
        outputs = [t for t in tensors_in(process(side.value)) if t.requires_grad]
        if not outputs or not leaves:
            return ()
        return library.autograd.grad(outputs, leaves, [library.ones_like(o) for o in outputs], allow_unused=True)

    return Outcome(gradients)
