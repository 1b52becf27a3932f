"""Every operator that has a CUDA kernel, on a real GPU, against our own kernels on the CPU. It needs no PyTorch."""

import pytest

import readtorch as rt
from readtorch.aten.dispatcher import registry
from readtorch.aten.native.cuda import register_cuda  # noqa: F401  (registers all)
from readtorch.c10.dispatch_key import CUDA
from tests.cuda.kernel_cases import DRAWN, IN_HALVES, NOT_COMPARED, ON_THE_CPU, ON_THE_HOST, TAKEN_ON_THE_CPU, cases_of

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]
REGISTERED = [name.removeprefix("aten::") for name, operator in registry.items() if CUDA in operator.kernels]


def moved(value, device):
    """Tensors of either library as ours, on the device; the same structure around them."""
    if isinstance(value, list | tuple):
        return type(value)([moved(one, device) for one in value])
    if isinstance(value, dict):
        return {name: moved(one, device) for name, one in value.items()}
    if type(value).__module__.partition(".")[0] == "torch":
        from tests.reference import to_readtorch

        value = to_readtorch(value)
    return value.clone().to(device) if isinstance(value, rt.Tensor) else value


def run(name, case, device):
    """What is compared of the result, and the arguments afterwards, if both devices take the same."""
    arguments, settings, see = case
    arguments, settings = moved(arguments, device), moved(settings, device)
    if name in ON_THE_HOST:
        arguments = tuple([a.cpu() if i == ON_THE_HOST[name] else a for i, a in enumerate(arguments)])
    takes = registry[f"aten::{name}"].schema.arguments
    if any(a.name == "device" for a in takes) and not any(a.type.is_tensor for a in takes):
        settings["device"] = device
    taken = arguments
    if device == "cpu":
        taken = TAKEN_ON_THE_CPU.get(name, tuple)(arguments)
    base, _, which = (ON_THE_CPU.get(name, name) if device == "cpu" else name).partition(".")
    result = getattr(getattr(rt.ops.aten, base), which or "default")(*taken, **settings)
    return list(tensors_and_numbers([see(result), () if name in ON_THE_CPU else arguments]))


def tensors_and_numbers(value):
    if isinstance(value, list | tuple):
        for one in value:
            yield from tensors_and_numbers(one)
    elif isinstance(value, rt.Tensor | int | float | complex):
        yield value.cpu() if isinstance(value, rt.Tensor) else value


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
@pytest.mark.parametrize("name", [name for name in REGISTERED if name not in DRAWN and name not in NOT_COMPARED])
def test_as_on_the_cpu(name):
    for case in cases_of(name):
        there, here = run(name, case, "cuda"), run(name, case, "cpu")
        tolerance = 2e-3 if name in IN_HALVES else 1e-4
        rt.testing.assert_close(there, here, rtol=tolerance, atol=tolerance, equal_nan=True, check_stride=False)
