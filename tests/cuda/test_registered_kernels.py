"""Every operator that has a CUDA kernel runs on the kernel simulator, thread by thread, and gives what PyTorch gives on
the CPU. The operators are those that the dispatcher has, the kernels those that stand in aten/native/cuda, and the
calls are in kernel_cases.py.
"""

import dis
import functools
import gc
import pathlib
import types

import pytest
import torch

import readtorch as rt
from readtorch import cuda
from readtorch.aten.dispatcher import registry
from readtorch.aten.native import cuda as room
from readtorch.aten.native.cuda import register_cuda, register_dispatch_key, sort  # noqa: F401  (registers all)
from readtorch.c10.cuda import simulator
from readtorch.c10.cuda.launch import launching_by
from readtorch.c10.dispatch_key import CUDA
from tests.cuda.kernel_cases import DRAWN, IN_HALVES, NOT_COMPARED, ON_THE_CPU, ON_THE_HOST, TAKEN_ON_THE_CPU, cases_of
from tests.reference import assert_close, own_copy, rebuild, tensors_on, to_readtorch, to_torch

REGISTERED = [name.removeprefix("aten::") for name, operator in registry.items() if CUDA in operator.kernels]

SEED = 7

# Overloads that have another name in PyTorch.
OTHER_NAMES = {
    "floor_divide_": "floor_divide_.Tensor",
    "pow_.Tensor_Tensor": "pow_.Tensor",
    "polygamma_.method": "polygamma_",
    **ON_THE_CPU,
}


@pytest.fixture(autouse=True, scope="module")
def device():
    cuda.simulate(1, "64MiB", kernels=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sort, "PIECE", 8)  # so that 20 elements must be merged
        yield
    results_of.cache_clear()
    gc.collect()
    cuda.simulate(0)


def overload(namespace, name):
    base, _, which = name.partition(".")
    return getattr(getattr(namespace.ops.aten, base), which or "default")


def run(name, arguments, settings):
    """(result, arguments afterwards) of our operator on the device, copied to the host."""
    with tensors_on("cuda"):
        arguments, settings = to_readtorch((arguments, settings))
    if name in ON_THE_HOST:
        arguments = tuple([a.cpu() if i == ON_THE_HOST[name] else a for i, a in enumerate(arguments)])
    takes = registry[f"aten::{name}"].schema.arguments
    if any(a.name == "device" for a in takes) and not any(a.type.is_tensor for a in takes):
        settings["device"] = "cuda"
    return on_host((overload(rt, name)(*arguments, **settings), arguments))


def on_host(value):
    return value.cpu() if isinstance(value, rt.Tensor) else rebuild(value, on_host)


@functools.cache
def results_of(name):
    """(what `run` gave for each case, the operators whose CUDA kernels ran, the kernels launched)."""
    operators, kernels, launched = set(), set(), register_dispatch_key.launched

    def note_operator(operator, *rest):
        operators.add(operator.name.removeprefix("aten::"))
        launched(operator, *rest)

    def note_kernel(kernel, *arguments, **settings):
        kernels.add((kernel.__code__.co_filename, kernel.__code__.co_firstlineno))
        simulator.check(kernel, *arguments, **settings)

    register_dispatch_key.launched = note_operator
    rt.manual_seed(SEED)
    try:
        with launching_by(note_kernel):
            return [run(name, *case[:2]) for case in cases_of(name)], operators, kernels
    finally:
        register_dispatch_key.launched = launched


def geometry(tensor):
    return tuple(tensor.shape), tensor.stride(), str(tensor.dtype).rpartition(".")[2]


def results_of_kernel(name):
    """What the cases of an operator gave, once it is known that its kernel ran."""
    assert cases_of(name), f"no case in kernel_cases.py for the CUDA kernel of 'aten::{name}'"
    results, operators, _ = results_of(name)
    assert name in operators, f"the CUDA kernel of 'aten::{name}' did not run"
    return results


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
@pytest.mark.parametrize("name", [name for name in REGISTERED if name not in DRAWN])
def test_as_pytorch_on_the_cpu(name):
    results = results_of_kernel(name)
    for (ours, our_arguments), (arguments, settings, see) in zip(results, cases_of(name), strict=True):
        their_arguments, their_settings = own_copy((arguments, settings))
        taken = TAKEN_ON_THE_CPU.get(name, tuple)(their_arguments)
        theirs = overload(torch, OTHER_NAMES.get(name, name))(*taken, **their_settings)
        if name in NOT_COMPARED:
            assert geometry(ours) == geometry(theirs)
            continue
        tolerance = 2e-3 if name in IN_HALVES else 2e-5
        assert_close(see(ours), see(theirs), rtol=tolerance, atol=tolerance)
        assert_close(our_arguments, their_arguments, rtol=2e-5, atol=2e-5, where="arguments afterwards")


def test_random_numbers_as_on_simulated_devices():
    """There NumPy makes them of the same Philox states; these were compared with a GPU's: test_simulated_device.py."""
    ours = {name: results_of_kernel(name) if name in REGISTERED else results_of(name)[0] for name in DRAWN}
    cuda.simulate(1, "64MiB")
    for name in DRAWN:
        rt.manual_seed(SEED)
        expected = to_torch([run(name, *case[:2]) for case in DRAWN[name]])
        assert_close(ours[name], expected, rtol=1e-5, atol=1e-6, where=name)
    cuda.simulate(1, "64MiB", kernels=True)


def returns_nothing(code):
    done = list(dis.get_instructions(code))
    given = [(a if b.opname == "RETURN_VALUE" else b) for a, b in zip(done, done[1:]) if b.opname.startswith("RETURN_")]
    return all(one.opname in ("LOAD_CONST", "RETURN_CONST") and one.argval is None for one in given)


def kernels_in(code):
    """The kernels in a module's code: functions that ask which block they are in, and return nothing."""
    for inner in (c for c in code.co_consts if isinstance(c, types.CodeType)):
        if "cuda" in inner.co_names and {"grid", "blockIdx"} & set(inner.co_names) and returns_nothing(inner):
            yield inner
        yield from kernels_in(inner)


def test_every_kernel_is_launched():
    launched = set().union(*[results_of(name)[2] for name in REGISTERED])
    files = sorted(pathlib.Path(room.__file__).parent.glob("*.py"))
    kernels = [k for file in files for k in kernels_in(compile(file.read_text(encoding="utf8"), file, "exec"))]
    missing = [f"{k.co_filename}:{k.co_name}" for k in kernels if (k.co_filename, k.co_firstlineno) not in launched]
    assert len(kernels) > 80
    assert not missing, "\n".join(missing)
