"""FakeTensorMode: results are described as the real ones are, on the devices that PyTorch gives them."""

import copy
import importlib
import itertools
import warnings

import pytest
import torch
from torch._subclasses import FakeTensorMode as TheirMode

import readtorch
from readtorch._subclasses import FakeTensor, FakeTensorMode
from tests.conformance import catalog, checks, meta, runner
from tests.conformance.checks import Missing, translate_all
from tests.programs import same

# ------------------------------------------------------------------------------------------------------ op_db

SAMPLES = 2


def leaves(value):
    """The tensors among results, in order."""
    if isinstance(value, (torch.Tensor, readtorch.Tensor)):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    return [t for part in value for t in leaves(part)] if isinstance(value, (list, tuple, type({}.values()))) else []


def described(value):
    """Shape, strides (but of dimensions with one element), dtype and device of each tensor among results."""
    return [
        (
            tuple(t.shape),
            tuple(None if n == 1 else s for n, s in zip(t.shape, t.stride())) if t.numel() else None,
            str(t.dtype).removeprefix("readtorch.").removeprefix("torch."),
            str(t.device),
        )
        for t in leaves(value)
    ]


def faked(mode, value):
    """The same arguments with FakeTensors."""
    if isinstance(value, (torch.Tensor, readtorch.Tensor)):
        return mode.from_tensor(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, (torch.Size, readtorch.Size)):
        parts = [faked(mode, v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return {k: faked(mode, v) for k, v in value.items()} if isinstance(value, dict) else value


def outcome(mode, function, args, kwargs):
    """What a call gives; the name of its error."""
    try:
        with warnings.catch_warnings(), mode:
            warnings.simplefilter("ignore")
            return described(function(*faked(mode, args), **faked(mode, kwargs)))
    except Exception as error:
        return type(error).__name__


def compare(name):
    """(what differs from our real results, what differs from PyTorch's fake ones) for some inputs of an operator."""
    from_real, from_theirs, count = [], [], 0
    for info in catalog.variants()[name][:1]:
        form = checks.forms_of(info)[0]
        if isinstance(form.ours, Missing) or torch.float32 not in info.dtypes:
            continue
        samples = [s for s in itertools.islice(info.sample_inputs("cpu", torch.float32), 20) if checks.is_ours(s)]
        for sample in runner.spread(samples, SAMPLES):
            args, kwargs = (sample.input, *sample.args), sample.kwargs
            ours = translate_all((args, kwargs))
            theirs = outcome(TheirMode(), form.theirs, args, kwargs)
            fake = outcome(FakeTensorMode(), form.ours, *ours)
            try:
                real = described(form.ours(*translate_all((args, kwargs))[0], **ours[1]))
            except Exception:
                continue
            count += 1
            if isinstance(fake, list) and fake != real:
                from_real.append((real, fake))
            if isinstance(theirs, list) != isinstance(fake, list) or isinstance(fake, str) and fake != theirs:
                from_theirs.append((theirs, fake))
            elif isinstance(fake, list) and [f[::2] for f in fake] != [t[::2] for t in theirs]:
                from_theirs.append((theirs, fake))
    return from_real, from_theirs, count


# Where results differ from PyTorch's fake ones, and why. None differs from the real ones.
DIFFERENT = {
    "nn.functional.ctc_loss": "the lengths are read from a tensor: PyTorch has no kernel to say so",
    "tensor_split": "the places are read from a tensor: PyTorch runs the operator with zeros",
    "to_sparse": "sparse FakeTensors are not made here",
    "combinations": "the mask is known, which PyTorch does not see",
    "signal.windows.kaiser": "PyTorch refuses its own constants",
    "linalg.pinv": "the tolerance is a tensor made beside the operator",
    "pinverse": "as above",
}


def names_compared():
    """A part of op_db's operators for a run of the tests; all with `--full-conformance`."""
    return [name for name in meta.passing_names() if name in catalog.variants() and name not in DIFFERENT]


@pytest.mark.parametrize("part", range(8))
def test_operators(part, request):
    names = names_compared()[part::8]
    names = names if request.config.getoption("--full-conformance") else names[::4]
    wrong = {}
    for name in names:
        from_real, from_theirs, _ = compare(name)
        if from_real or from_theirs:
            wrong[name] = from_real[:1], from_theirs[:1]
    assert not wrong


# --------------------------------------------------------------------------------------------------- behaviour


def fakes(T):
    return importlib.import_module(f"{T.__name__}._subclasses.fake_tensor")


def test_from_real_tensors():
    def program(T, show):
        fake = fakes(T)
        mode = fake.FakeTensorMode()
        x = T.ones(2, 3)
        p, g = T.nn.Parameter(x.clone()), T.ones(2, 3, requires_grad=True)
        for t in (x, p, g, x.double(), x.t(), x[1], g * 2, x.to("meta")):
            f = mode.from_tensor(t)
            show(f.shape, f.stride(), f.dtype, f.device, f.storage_offset(), f.requires_grad, f.is_leaf)
            show(f.untyped_storage().nbytes(), isinstance(f, T.nn.Parameter), type(f).__name__)
        show(mode.from_tensor(x) is mode.from_tensor(x), fake.is_fake(mode.from_tensor(x)), fake.is_fake(x))
        f = mode.from_tensor(x)
        show(f, mode.from_tensor(p), mode.from_tensor(g), f + 1, type(f @ f.t()).__name__, f.fake_device)
        show(fake.maybe_get_fake_mode(f) is mode, fake.maybe_get_fake_mode(x))
        with mode:
            show(T.add(f, 1), f.view(-1).untyped_storage().nbytes(), f.add_(1) is f)
        for wrong in (
            lambda: f.sum().item(),
            lambda: bool(f.sum() > 0),
            lambda: f.nonzero(),
            lambda: f[f > 0],
            lambda: f.masked_select(f > 0),
            lambda: f.unique(),
            lambda: f.tolist(),
            lambda: f.numpy(),
            lambda: f + x,
            lambda: T.bincount(mode.from_tensor(T.ones(3, dtype=T.int64))),
            lambda: T.equal(f, f),
            lambda: f + fake.FakeTensorMode().from_tensor(x),
            lambda: fake.FakeTensor(mode, x, "cpu"),
            lambda: fake.FakeTensor(mode, x.to("meta")),
        ):
            show.error(wrong)

    same(program)


def test_inside_the_mode():
    def program(T, show):
        fake = fakes(T)
        mode = fake.FakeTensorMode()
        real = T.ones(2, 3)
        with mode:
            show(T.ones(2), T.empty(2, 3, dtype=T.int32), T.arange(4), T.tensor([1.0, 2.0]), T.zeros_like(T.ones(2)))
            show(T.ones(2, device="cuda"), T.ones(2, device="cuda:1"), T.ones(2, device="meta"))
            layer = T.nn.Linear(3, 4)
            out = layer(T.ones(2, 3))
            show(out, layer.weight)
            out.sum().backward()
            show(layer.weight.grad, layer.bias.grad)
            T.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9).step()
            with mode:
                show(T.ones(2))
            with fake.unset_fake_temporarily() as old:
                show(type(T.ones(2)) is T.Tensor, old is mode)
            show(T.ones(2, 3).t_().shape, T.add(T.ones(2), 1, out=T.empty(2)), T.ones(4, 3)[T.tensor([0, 1])])
            show(T.cat([T.ones(2), T.ones(3)]), T.ones(6).split(2), T.ones(6).is_pinned())
            show.error(lambda: real + 1)
        with fake.FakeTensorMode(allow_non_fake_inputs=True):
            show(real + 1)
            show.error(lambda: real.t_())
        with fake.FakeCopyMode(mode):
            show(list(copy.deepcopy(T.nn.Linear(2, 3)).parameters()))

    same(program)


def test_known_numbers():
    def program(T, show):
        with fakes(T).FakeTensorMode():
            t = T.tensor(3)
            show(t, t.constant, t.item(), (t + 1).item(), (t + 1).constant, (T.tensor(2) * T.tensor(3)).item())
            u = T.tensor(3)
            u.add_(1)
            show(u.item(), T.tensor(3, device="cuda"))
            u.random_()
            show.error(lambda: u.item())
            show.error(lambda: T.tensor([2, 3])[0].item())
            show.error(lambda: T.ones(()).item())

    same(program)


def test_devices():
    with FakeTensorMode() as mode:
        on_cuda, on_cpu = readtorch.ones(2, device="cuda"), readtorch.ones(2)
        assert str((on_cuda + 1).device) == "cuda:0" and str((on_cuda + readtorch.ones(())).device) == "cuda:0"
        assert str(on_cpu.to("cuda").device) == "cuda:0" and str(on_cuda.cpu().device) == "cpu"
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            on_cuda + on_cpu
        layer = readtorch.nn.Linear(2, 3, device="cuda")
        assert str(layer(on_cuda).device) == "cuda:0"
    assert isinstance(on_cpu, FakeTensor) and on_cpu.fake_mode is mode


def test_views_that_are_leaves():
    """A view of a base without a gradient, and one that was made where nothing is recorded."""

    def facts(lib, mode):
        with lib.no_grad():
            hidden = lib.ones(3, requires_grad=True).view(3).requires_grad_()
        fakes = [mode().from_tensor(view) for view in (lib.ones(3).view(3).requires_grad_(), hidden)]
        return [(fake.requires_grad, fake.is_leaf, fake._is_view()) for fake in fakes]

    assert facts(readtorch, FakeTensorMode) == facts(torch, TheirMode)
