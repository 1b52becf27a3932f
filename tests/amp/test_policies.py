"""What autocast does with each operator of op_db: shapes and dtypes of the results, as PyTorch's.

On the CPU beside PyTorch's kernels; on a simulated CUDA device beside PyTorch's fake tensors, which have the keys of a device that
is not there.
"""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

import readtorch as rt
from readtorch.aten.autocast_mode import POLICIES
from readtorch.aten.dispatcher import registry
from tests.conformance import catalog, checks, runner
from tests.reference import seed_both

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
FEW = 2  # samples of each operator and dtype
DIFFERENT = {
    "linalg.pinv": "one kernel, of which autocast does not see the last product",
    # of which PyTorch's parts call cat, which refuses float16 where bfloat16 is the low precision
    **dict.fromkeys(("isin", "matrix_exp", "roll", "fft.fftshift", "fft.ifftshift"), "not composed of cat"),
    # there is no complex32, of which autocast knows nothing
    **dict.fromkeys(("complex", "chalf", "view_as_complex"), "no complex32"),
    "ldexp": "float16, as PyTorch's CPU says",
    **dict.fromkeys(
        ("native_batch_norm", "_native_batch_norm_legit"),
        "on a real CUDA device statistics are saved in evaluation, too",
    ),
    **dict.fromkeys(
        ("svd_lowrank", "pca_lowrank"), "the simulated device refuses a QR decomposition of float16, as the CPU does"
    ),
    "as_strided": "its memory was not copied to the device",
}


def test_the_operators_with_a_policy():
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    ours = {name for name in registry if name.startswith("aten::")}
    for device_type, key in (("cpu", "AutocastCPU"), ("cuda", "AutocastCUDA")):
        theirs = {name for name in names if torch._C._dispatch_has_kernel_for_dispatch_key(name, key)}
        assert set(POLICIES[device_type]) == theirs
        for name in theirs & ours:
            assert rt._C._dispatch_has_kernel_for_dispatch_key(name, key), name
        assert not any(rt._C._dispatch_has_kernel_for_dispatch_key(name, key) for name in ours - theirs)


def shapes(value):
    if isinstance(value, (torch.Tensor, rt.Tensor)):
        return tuple(value.shape), str(value.dtype).rpartition(".")[2]
    return list(map(shapes, value)) if isinstance(value, (list, tuple)) else type(value).__name__


def samples_of(info, dtypes):
    for dtype in dtypes:
        if dtype in info.supported_dtypes("cpu"):
            seed_both(0)
            samples = [s for s in info.sample_inputs("cpu", dtype) if checks.is_ours(s)]
            for sample in runner.spread(samples, FEW if dtype == torch.float32 else 1):
                yield (sample.input, sample.args, sample.kwargs)


def compared(ours, theirs):
    """What differs, or None; where PyTorch refuses, so must readtorch."""
    if theirs.error is not None or ours.error is not None:
        kinds = [type(o.error).__name__ for o in (ours, theirs)]
        return None if kinds[0] == kinds[1] else f"{ours.error!r}, PyTorch: {theirs.error!r}"
    found, expected = shapes(ours.value), shapes(theirs.value)
    return None if found == expected else f"{found}, PyTorch: {expected}"


def differences(info, dtypes, run):
    form = checks.forms_of(info)[0]
    if isinstance(form.ours, checks.Missing):
        return
    for arguments in samples_of(info, dtypes):
        wrong = run(form, arguments)
        if wrong:
            yield f"{checks.describe_arguments(arguments[1], arguments[2])}: {wrong}"


@pytest.mark.parametrize("name", sorted(catalog.variants()))
def test_on_the_cpu(name):
    def run(form, arguments):
        ours = checks.translate_all(arguments)
        with torch.autocast("cpu"):
            theirs = checks._call(form.theirs, arguments, False)
        with rt.autocast("cpu"):
            return compared(checks._call(form.ours, ours, False), theirs)

    found = [wrong for info in catalog.variants()[name] for wrong in differences(info, DTYPES, run)]
    assert bool(found) <= (name in DIFFERENT), found


# ------------------------------------------------------------------------------------------------- beside fake tensors


@pytest.fixture(scope="module")
def device():
    rt.cuda.simulate(1)
    yield rt.device("cuda:0")
    rt.cuda.simulate(0)


def moved(value, kind, move, device):
    """`value` with its tensors moved, and with this device in the place of another."""
    if isinstance(value, kind.Tensor):
        return move(value)
    if isinstance(value, kind.device):
        return device
    if isinstance(value, dict):
        return {k: moved(v, kind, move, device) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, kind.Size):
        return type(value)(moved(v, kind, move, device) for v in value)
    return value


@pytest.mark.parametrize(
    "name", sorted(n for n in catalog.variants() if not n.startswith(("linalg.lstsq", "linalg.pinv")))
)
def test_on_cuda(name, device):
    mode = FakeTensorMode(allow_non_fake_inputs=True)

    def fake(t):
        empty = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
        return FakeTensor(mode, empty, torch.device("cuda:0"))

    def run(form, arguments):
        ours = moved(checks.translate_all(arguments), rt, lambda t: t.cuda(), device)
        torch.set_autocast_enabled("cuda", True)
        try:
            with mode:
                theirs = checks._call(form.theirs, moved(arguments, torch, fake, torch.device("cuda:0")), False)
        finally:
            torch.set_autocast_enabled("cuda", False)
            torch.clear_autocast_cache()
        if theirs.error is not None:  # nearly always that a fake tensor has no numbers
            return None
        with rt.autocast("cuda"):
            return compared(checks._call(form.ours, ours, False), theirs)

    found = [w for info in catalog.variants()[name] for w in differences(info, (torch.float32, torch.float16), run)]
    assert bool(found) <= (name in DIFFERENT), found
