"""Small names that libraries of the package index touch, each against PyTorch: what they give, and how they refuse."""

import inspect
import io
import warnings

import pytest
import torch

import readtorch as rt

BOTH = (torch, rt)


def outcome(run):
    """What a program gives, as plain values, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = run()
        except Exception as error:
            return type(error).__name__, str(error)
    return result.tolist() if hasattr(result, "tolist") else result


def same(program):
    expected, here = (outcome(lambda: program(T)) for T in BOTH)
    assert here == expected


@pytest.mark.parametrize("name, arguments", [("eig", 0), ("symeig", 0), ("lstsq", 1), ("solve", 1)])
def test_removed_solvers(name, arguments):
    same(lambda T: getattr(T.ones(2, 2), name)(*[T.ones(2, 2)] * arguments))
    same(lambda T: getattr(T, name)(*[T.ones(2, 2)] * (arguments + 1)))
    same(lambda T: T.matrix_rank(T.ones(2, 2)))


def test_older_resize():
    same(lambda T: T.arange(4).resize(2, 2))
    same(lambda T: T.ones(2, 2).resize(3))
    same(lambda T: T.arange(4).resize_as(T.ones(2, 2)))


def test_reinforce_was_removed():
    same(lambda T: T.ones(2).reinforce(1))


# In PyTorch these are written in Python, and Python itself says what is wrong with their arguments.
METHODS_IN_PYTHON = ["lu", "norm", "split", "stft", "istft", "unique", "unique_consecutive", "unflatten", "reinforce"]


@pytest.mark.parametrize("name", METHODS_IN_PYTHON)
def test_signatures_of_methods_in_python(name):
    def seen(T):
        method = getattr(T.Tensor, name)
        parameters = inspect.signature(method).parameters.values()
        return [(p.name, p.kind, p.default) for p in parameters], method.__qualname__

    assert seen(rt) == seen(torch)
    same(lambda T: getattr(T.Tensor, name)())
    same(lambda T: getattr(T.ones(4, 4), name)(*range(12)))
    same(lambda T: getattr(T.ones(4, 4), name)(out=None))


def test_methods_in_python_take_their_arguments_by_name():
    same(lambda T: T.arange(6).unflatten(dim=0, sizes=(2, -1)))
    same(lambda T: T.arange(6).unflatten(0, sizes=[]))
    same(lambda T: [part.tolist() for part in T.arange(6).split(split_size=[2, 4])])
    same(lambda T: [part.tolist() for part in T.arange(6).split(4, dim=-1)])
    same(lambda T: T.eye(2).norm(p=1, dim=0, keepdim=True, dtype=T.float64))
    same(lambda T: T.tensor([3, 1, 3]).unique(sorted=True, return_counts=True)[1])
    same(lambda T: T.eye(3).lu(pivot=True, get_infos=True)[2])


def test_names_of_exit():
    theirs, ours = (inspect.signature(T.autograd.set_multithreading_enabled.__exit__) for T in BOTH)
    assert list(ours.parameters) == list(theirs.parameters)


def test_reduce_op_is_an_older_name():
    for T in BOTH:
        with pytest.warns(FutureWarning, match="`torch.distributed.reduce_op` is deprecated, please use"):
            assert T.distributed.reduce_op.SUM == T.distributed.ReduceOp.SUM
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert list(rt.distributed.reduce_op.__members__) == list(torch.distributed.reduce_op.__members__)
    same(lambda T: T.distributed.reduce_op.NOTHING)


def test_checkpoint_takes_its_own_arguments_and_the_functions():
    def parameters(T):
        return [(p.name, p.kind) for p in inspect.signature(T.utils.checkpoint.checkpoint).parameters.values()]

    assert parameters(rt) == parameters(torch)
    same(
        lambda T: T.utils.checkpoint.checkpoint(T.ones, 2, use_reentrant=False, preserve_rng_state=False, dtype=T.int32)
    )
    same(lambda T: T.utils.checkpoint.checkpoint(T.ones, 2, use_reentrant=True, dtype=T.int32))


TENSORS = [
    lambda T: T.empty(()),
    lambda T: T.empty(2, 3, 4, 5),
    lambda T: T.empty(2, 3, 4, 5).to(memory_format=T.channels_last),
    lambda T: T.empty(2, 3, 4).transpose(0, 2),
    lambda T: T.empty(1, 1, 3),
    lambda T: T.empty(2, 3).expand(4, 2, 3),
    lambda T: T.empty(3, 1, 2).permute(2, 0, 1),
    lambda T: T.empty_strided((2, 3, 4), (0, 1, 3)),
    lambda T: T.empty_strided((2, 3, 2), (2, 2, 1)),
    lambda T: T.empty(4, 1, 3, 1).transpose(1, 2),
]


@pytest.mark.parametrize("make", TENSORS)
def test_dim_order(make):
    same(lambda T: make(T).dim_order())
    same(lambda T: make(T).dim_order(ambiguity_check=True))
    same(lambda T: make(T).dim_order(ambiguity_check=[T.contiguous_format, T.channels_last]))
    same(lambda T: make(T).dim_order(ambiguity_check="no"))


def test_sums_and_choices_of_symbols():
    for program in (
        lambda T: T.sym_sum([1, 2, 3]),
        lambda T: T.sym_sum(1, 2.5),
        lambda T: T.sym_sum([]),
        lambda T: T.sym_ite(True, 1, 2),
        lambda T: T.sym_ite(False, 1, 2.0),
        lambda T: T.sym_ite(1, 1, 2),
    ):
        same(program)


def test_modules_of_devices():
    assert rt.get_device_module("cpu") is rt.cpu and rt.get_device_module() is rt.cpu
    assert rt.get_device_module(rt.device("cuda:1")) is rt.cuda
    same(lambda T: T.get_device_module("meta"))
    same(lambda T: T.get_device_module(3))
    assert rt.compiled_with_cxx11_abi() == torch.compiled_with_cxx11_abi()
    assert "USE_CUDA=OFF" in rt.__config__.show() and "get_num_threads" in rt.__config__.parallel_info()


@pytest.mark.parametrize("arguments", [(), (2, True), (0,), (1,), (-1,), (5, False)])
@pytest.mark.parametrize("dtype", ["int32", "float32", "bool", "complex64"])
def test_vander(arguments, dtype):
    same(lambda T: T.vander(T.tensor([3, 0, 2]).to(getattr(T, dtype)), *arguments))
    same(lambda T: T.vander(T.ones(2, 2)))


PER_TENSOR = [(0.1, 3, 0, 255), (0.37, -3, -128, 127), (0.013, 0, -8, 7), (0.1, 300, 0, 255), (0.1, 0, 255, 0)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64"])
@pytest.mark.parametrize("scale, zero, low, high", PER_TENSOR)
def test_fake_quantize_per_tensor(dtype, scale, zero, low, high):
    def program(T, tensors):
        x = T.linspace(-70, 70, 101).to(getattr(T, dtype))
        settings = (T.tensor(scale), T.tensor(zero)) if tensors else (scale, zero)
        return T.fake_quantize_per_tensor_affine(x, *settings, low, high).double()

    same(lambda T: program(T, False))
    same(lambda T: program(T, True))


CHANNELS = [
    ([0.1, 0.2], [0, 3], "int32", 0),
    ([0.1, 0.2], [0.3, 3], "float32", 0),
    ([0.1, 0.2], [0, 300], "int32", 0),
    ([0.1, 0.2], [0, 3], "int64", 0),
    ([0.1, 0.2], [0, 3], "int32", -2),
    ([0.1, 0.2], [0, 3], "int32", 5),
    ([0.1], [0], "int32", 0),
    ([0.1, 0.2], [0], "int32", 0),
    ([[0.1, 0.2]], [0], "int32", 0),
]


@pytest.mark.parametrize("scale, zero, kind, axis", CHANNELS)
def test_fake_quantize_per_channel(scale, zero, kind, axis):
    def program(T):
        x = T.linspace(-70, 70, 102).view(2, 51)
        zeros = T.tensor(zero, dtype=getattr(T, kind))
        return T.fake_quantize_per_channel_affine(x, T.tensor(scale), zeros, axis, 0, 255)

    same(program)


def test_gradients_of_fake_quantize():
    def program(T, quantize):
        x = T.linspace(-10, 30, 5).requires_grad_()
        quantize(T, x).sum().backward()
        return x.grad

    same(lambda T: program(T, lambda T, x: T.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255)))
    same(lambda T: program(T, lambda T, x: T.fake_quantize_per_tensor_affine(x, T.tensor(0.1), T.tensor(3), 0, 255)))
    same(lambda T: program(T, lambda T, x: T.fake_quantize_per_channel_affine(x, T.ones(5), T.zeros(5), 0, 0, 9)))


# ------------------------------------------------------------------------------------------------- checkpointing


def kept(T, policy, backward=1):
    """The operators that run in backward under a policy, and the gradient."""
    from importlib import import_module

    checkpoint = import_module(f"{T.__name__}.utils.checkpoint")
    Mode = import_module(f"{T.__name__}.utils._python_dispatch").TorchDispatchMode
    calls = []

    class Counting(Mode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            calls.append(str(func))
            return func(*args, **(kwargs or {}))

    x = T.arange(4.0).view(2, 2).requires_grad_()
    context_fn = lambda: checkpoint.create_selective_checkpoint_contexts(policy(T, checkpoint.CheckpointPolicy))
    y = checkpoint.checkpoint(lambda x: (x.mm(x).sin() @ x).exp(), x, use_reentrant=False, context_fn=context_fn)
    with Counting():
        for _ in range(backward):
            y.sum().backward(retain_graph=True)
    return [calls.count(f"aten.{name}.default") for name in ("mm", "sin", "exp")], x.grad.tolist()


POLICIES = [
    lambda T, P: [T.ops.aten.mm.default],
    lambda T, P: [T.ops.aten.sin.default],
    lambda T, P: lambda context, op, *args, **kwargs: P.MUST_SAVE,
    lambda T, P: lambda context, op, *args, **kwargs: P.PREFER_RECOMPUTE,
    lambda T, P: lambda context, op, *args, **kwargs: op is T.ops.aten.mm.default,
    lambda T, P: [T.ops.aten.mm],
    lambda T, P: 3,
]


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_of_checkpoints(policy):
    here, there = (outcome(lambda: kept(T, policy)) for T in (rt, torch))
    if isinstance(there[0], list):  # PyTorch runs as many operators as it says, and finds the same
        assert here[0] == there[0]
        torch.testing.assert_close(torch.tensor(here[1]), torch.tensor(there[1]))
    else:
        assert here[0] == there[0] and here[1].replace("readtorch", "torch") == there[1]


def test_what_was_kept_is_given_once():
    same(lambda T: kept(T, POLICIES[0], backward=2))


# --------------------------------------------------------------------------------------- doors to empty rooms


def test_cuda_without_a_device():
    for program in (
        lambda T: T.cuda.cudart(),
        lambda T: T.cuda.current_blas_handle(),
        lambda T: T.cuda.get_sync_debug_mode(),
        lambda T: T.cuda.set_sync_debug_mode("warn"),
        lambda T: T.cuda.get_gencode_flags(),
        lambda T: T.cuda.nvtx.mark("a"),
        lambda T: T.cuda.nvtx.range_push("a"),
        lambda T: T.cuda.nvtx.range_pop(),
        lambda T: T.cuda.nvtx.range("a").__enter__(),
        lambda T: T.cuda.jiterator._create_jit_fn("template <typename T> T f(T x) { return x; }")(T.ones(2)),
        lambda T: T.cuda.jiterator._create_multi_output_jit_fn("f", 2),
    ):
        same(program)


@pytest.mark.parametrize(
    "name", ["clock_rate", "device_memory_used", "memory_usage", "power_draw", "temperature", "utilization"]
)
def test_nvml_without_its_package(name):
    same(lambda T: getattr(T.cuda, name)())


def test_marks_for_intels_profilers():
    itt = rt.profiler.itt
    assert not itt.is_available()
    with pytest.raises(RuntimeError) as caught:
        itt.mark("a")
    assert str(caught.value) in inspect.getsource(torch.profiler.itt)


def test_a_library_of_cpp_operators():
    with pytest.raises(OSError, match="written in C"):
        rt.ops.load_library("a.so")
    try:
        fake = lambda x: x
        assert rt.library.register_fake("nowhere::f", fake) is fake  # as packages do whose library could not be loaded
        assert not hasattr(rt.ops.nowhere, "f")
    finally:
        rt._ops.refused_libraries.clear()
    with pytest.raises(RuntimeError, match="operator nowhere::f does not exist"):
        rt.library.register_fake("nowhere::f", fake)


def test_devices_of_other_makers():
    """They can be named and compared, as programs do to find out where they are; there are no tensors there."""
    for program in (
        lambda T: str(T.device("mps")),
        lambda T: repr(T.device("xpu:1")),
        lambda T: T.device("hpu") == T.device("cpu"),
        lambda T: T.device("npu"),
    ):
        same(program)
    for use in (lambda: rt.ones(2, device="mps"), lambda: rt.ones(2).to("xpu"), lambda: rt.nn.Linear(2, 2).to("hpu")):
        with pytest.raises(RuntimeError, match="readtorch has no '(mps|xpu|hpu)' device"):
            use()


def test_settings_of_the_first_fsdp():
    import torch.distributed.fsdp as there

    import readtorch.distributed.fsdp as here

    for name in there.__all__:
        expected, found = getattr(there, name), getattr(here, name, None)
        if issubclass(type(expected), type(there.StateDictType)):  # an enumeration
            assert {m.name: m.value for m in found} == {m.name: m.value for m in expected}
        elif name.endswith("Config") or name == "CPUOffload":
            assert repr(found()) == repr(expected())
    assert repr(here.MixedPrecision(rt.float16)).partition(", _module")[0] in repr(there.MixedPrecision(torch.float16))
    with pytest.raises(NotImplementedError, match="use torch.distributed.fsdp.fully_shard"):
        here.FullyShardedDataParallel(rt.nn.Linear(2, 2))
    assert not rt.distributed.rpc.is_available()


def test_policies_of_the_first_fsdp():
    def program(T):
        from importlib import import_module

        wrap, nn = import_module(f"{T.__name__}.distributed.fsdp.wrap"), T.nn
        layers = [nn.Linear(4, 4), nn.ModuleList(), nn.MultiheadAttention(4, 2)]
        policies = [
            wrap.always_wrap_policy,
            wrap.ModuleWrapPolicy([nn.Linear]),
            lambda m, recurse, n: wrap.lambda_auto_wrap_policy(m, recurse, n, lambda m: isinstance(m, nn.ModuleList)),
            lambda m, recurse, n: wrap.transformer_auto_wrap_policy(m, recurse, n, {nn.Linear}),
            lambda m, recurse, n: wrap.size_based_auto_wrap_policy(m, recurse, n, min_num_params=10),
            lambda m, recurse, n: wrap.size_based_auto_wrap_policy(m, recurse, n, 10, {nn.Linear}, {nn.Linear}),
        ]
        chosen = [p(m, r, n) for p in policies for m in layers for r in (True, False) for n in (5, 10)]
        model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 3))
        for policy in (
            wrap.ModuleWrapPolicy([nn.Linear]),
            wrap.CustomPolicy(lambda m: {"a": 2} if isinstance(m, nn.ReLU) else isinstance(m, nn.Sequential)),
        ):
            found = policy._run_policy(model, {model[2]}, {"a": 1, "b": 3})
            chosen.append([(type(module).__name__, kwargs) for module, kwargs in found.items()])
        return chosen

    same(program)
    same(lambda T: __import__(f"{T.__name__}.distributed.fsdp.wrap", fromlist="a").wrap(3))


def test_tensors_as_one():
    def program(T):
        from importlib import import_module

        utils = import_module(f"{T.__name__}._utils")
        tensors = [T.arange(6.0).view(2, 3).t(), T.ones(()), T.empty(0, 2), T.arange(2.0)]
        flat = utils._flatten_dense_tensors(tensors)
        again = utils._unflatten_dense_tensors(flat, tensors)
        flat.mul_(2)
        return [flat.tolist(), *(t.tolist() for t in again)]

    same(program)


def test_addresses_that_stay():
    from readtorch._dynamo import mark_static_address

    t = rt.ones(2)
    mark_static_address(t)
    assert t._dynamo_static_input_type == "unguarded"
    with pytest.raises(NotImplementedError, match="does not guard"):
        mark_static_address(t, guard=True)
    same(lambda T: getattr(__import__(f"{T.__name__}._dynamo", fromlist="a"), "mark_static_address")(3))


def test_random_states_of_devices():
    from readtorch.utils.checkpoint import get_device_states, set_device_states

    assert get_device_states(rt.ones(2), [3, "a"]) == ([], [])
    set_device_states([0], [None], device_type="meta")


CHECKS = ["_check", "_check_index", "_check_value", "_check_type", "_check_not_implemented", "_check_tensor_all"]


@pytest.mark.parametrize("name", CHECKS)
def test_stated_conditions(name):
    for make in (
        lambda T: (True, 3),
        lambda T: (False,),
        lambda T: (False, lambda: f"no: {1}"),
        lambda T: (False, "text"),
        lambda T: (1,),
        lambda T: (T.tensor([True, True]),),
        lambda T: (T.tensor([True, False]), lambda: "some"),
        lambda T: (T.tensor([1]),),
    ):
        expected, here = (outcome(lambda: getattr(T, name)(*make(T))) for T in BOTH)
        assert here == eval(repr(expected).replace("class 'torch.", "class 'readtorch._tensor."))


def test_other_stated_conditions():
    same(lambda T: T._check_with(KeyError, False, lambda: "a"))
    same(lambda T: T._check_with(UserWarning, False, None))
    same(lambda T: T._check_tensor_all_with(ValueError, T.zeros(1, dtype=T.bool)))
    same(lambda T: T._check_tensor_all_with(ValueError, 3))
    for arguments in ((-1,), (2,), (5, None)):
        same(lambda T: T._check_is_size(*arguments))
    same(lambda T: T._check_is_size(5, max=4))

    class Rows(rt.nn.Module):
        def forward(self, x):
            rt._check(x.shape[0] > 2)
            assert rt.compiler.is_exporting()
            return x + 1

    program = rt.export.export(Rows(), (rt.ones(4),), dynamic_shapes=({0: rt.export.Dim("n", min=3)},))
    assert program.module()(rt.ones(3)).tolist() == [2, 2, 2]
    assert not rt.compiler.is_exporting()


def test_what_to_is_asked_for():
    for make in (
        lambda T: (("cpu",), {}),
        lambda T: (("cuda:1", T.float64, True), {}),
        lambda T: ((T.ones(2, dtype=T.float64),), {}),
        lambda T: ((), {"dtype": T.int8, "memory_format": T.channels_last}),
        lambda T: ((T.device("cpu"), None, True), {}),
        lambda T: ((), {}),
    ):
        answers = (T._C._nn._parse_to(*make(T)[0], **make(T)[1]) for T in BOTH)
        assert len({str(answer) for answer in answers}) == 1


def test_whether_a_trace_is_under_way():
    seen = []
    rt.jit.trace(lambda x: seen.append(rt._C._get_tracing_state() is not None) or x + 1, rt.ones(2), check_trace=False)
    assert seen == [True] and rt._C._get_tracing_state() is None
    assert rt.legacy_contiguous_format is rt.contiguous_format
    assert not rt._dynamo.is_compiling() and rt.compiler.cudagraph_mark_step_begin() is None


def test_extensions_in_cpp():
    from readtorch.utils import cpp_extension

    for use in (cpp_extension.load, cpp_extension.load_inline, cpp_extension.CppExtension):
        with pytest.raises(NotImplementedError, match="does not compile extensions"):
            use("a", [])
    assert cpp_extension.is_ninja_available() == (__import__("shutil").which("ninja") is not None)


def test_collectives_with_gradients():
    from readtorch.distributed import run_threads
    from readtorch.distributed.nn import functional

    def program(rank):
        x = (rt.arange(2.0) + rank + 1).requires_grad_()
        one, two = functional.all_gather(x)
        (one * (rank + 1) + two * 10 * (rank + 1)).sum().backward()
        y = (rt.ones(2) * (rank + 1)).requires_grad_()
        (functional.all_reduce(y) * (rank + 1)).sum().backward()
        z = (rt.ones(2) * (rank + 5)).requires_grad_()
        given = functional.broadcast(z, 1)
        (given * (rank + 1)).sum().backward()
        return one.tolist(), two.tolist(), x.grad.tolist(), y.grad.tolist(), given.tolist(), z.grad.tolist()

    assert run_threads(program, 2) == [
        ([1, 2], [2, 3], [3, 3], [3, 3], [6, 6], [0, 0]),
        ([1, 2], [2, 3], [30, 30], [3, 3], [6, 6], [3, 3]),
    ]


# ------------------------------------------------------------------------------------------------------- others


def test_older_comparison():
    same(lambda T: T.testing.assert_allclose(T.ones(2), T.ones(2, dtype=T.float64) + 1e-5))
    same(lambda T: T.testing.assert_allclose(T.ones(2), T.ones(2) + 1))
    same(lambda T: T.testing.assert_allclose([1.0, 2.0], [1.0, 2.0]))


def test_reductions_as_objects():
    same(lambda T: int(T.distributed.ReduceOp(T.distributed.ReduceOp.SUM).op))
    same(lambda T: T.distributed.ReduceOp(T.distributed.ReduceOp.SUM).factor)


def test_records_of_a_checkpoint(tmp_path):
    path = str(tmp_path / "a.pt")
    torch.save({"a": torch.arange(3)}, path)
    for source in (path, io.BytesIO(open(path, "rb").read())):
        reader, expected = rt.PyTorchFileReader(source), torch.PyTorchFileReader(path)
        assert sorted(reader.get_all_records()) == sorted(expected.get_all_records())
        assert reader.get_record("data/0") == expected.get_record("data/0")
        assert reader.has_record("data.pkl") and not reader.has_record("data/1")
        assert reader.serialization_id() == expected.serialization_id()


def test_older_places():
    import importlib

    for here, elsewhere in (
        ("distributed._tensor", "distributed.tensor"),
        ("distributed._tensor.experimental", "distributed.tensor.experimental"),
        ("distributed._tensor.device_mesh", "distributed.device_mesh"),
        ("distributed._composable.fsdp", "distributed.fsdp"),
        ("cuda.comm", "nn.parallel.comm"),
    ):
        old, new = (importlib.import_module(f"readtorch.{name}") for name in (here, elsewhere))
        shared = [name for name in dir(new) if not name.startswith("_") and name in vars(old)]
        assert any(getattr(old, name) is getattr(new, name) for name in shared)
    assert importlib.import_module("readtorch.utils.model_zoo").load_url is rt.hub.load_state_dict_from_url
    assert importlib.import_module("readtorch._custom_ops").get_ctx is rt.library.get_ctx
    home = importlib.import_module("torch.hub")._get_torch_home()
    assert rt.hub._get_torch_home() == home


def test_an_overloaded_method_runs_in_python_only():
    class Sized(rt.nn.Module):
        @rt.jit._overload_method
        def forward(self, x: int) -> int: ...

        def forward(self, x):  # noqa: F811
            return x

    assert Sized()(3) == 3
    with pytest.raises(NotImplementedError, match="overloaded functions, but not the method '.*Sized.forward'"):
        rt.jit.script(Sized())


def test_rooms_that_are_empty_refuse_when_they_are_used():
    from readtorch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
    from readtorch.onnx import symbolic_opset11

    for use in (HuggingFaceStorageReader, HuggingFaceStorageWriter, symbolic_opset11.squeeze):
        with pytest.raises(NotImplementedError, match="readtorch (does not|has no)"):
            use("a")


def test_rows_that_are_exchanged_have_gradients():
    from readtorch.distributed import group, run_threads
    from readtorch.distributed._functional_collectives import all_to_all_single_autograd, wait_tensor

    def program(rank):
        x = (rt.arange(3.0) + 10 * rank).requires_grad_()
        given = [1, 2] if rank == 0 else [2, 1]  # rows for each rank
        taken = [1, 2] if rank == 0 else [2, 1]
        y = wait_tensor(all_to_all_single_autograd(x, taken, given, group.WORLD))
        (y * (rank + 1)).sum().backward()
        return y.tolist(), x.grad.tolist()

    assert run_threads(program, 2) == [([0, 10, 11], [1, 2, 2]), ([1, 2, 12], [1, 1, 2])]


# ------------------------------------------------------------------------------------------- names of torch._C


def test_trace_under_way():
    def seen(T):
        states = [T._C._get_tracing_state() is None]
        T.jit.trace(
            lambda x: (states.append(T._C._get_tracing_state() is None), x + 1)[1], T.ones(2), check_trace=False
        )
        return states + [T._C._get_tracing_state() is None]

    assert seen(rt) == seen(torch) == [True, False, True]


def test_modules_of_torchscript(tmp_path):
    for T in BOTH:
        file = str(tmp_path / f"{T.__name__}.pt")
        scripted = T.jit.script(T.nn.Sequential(T.nn.Linear(2, 2)))
        scripted.save(file)
        traced = T.jit.trace(T.nn.Linear(2, 2), T.ones(1, 2))
        frozen = T.jit.freeze(T.jit.script(T.nn.Linear(2, 2).eval()))
        for module in (scripted, traced, frozen, T.jit.load(file), scripted.__copy__()):
            assert type(module._c) is T.ScriptModule is T._C.ScriptModule and isinstance(module._c, T.ScriptObject)
            assert not isinstance(module, T.ScriptModule)


TO = [
    lambda T: (("cpu",), {}),
    lambda T: ((T.float64,), {}),
    lambda T: (("cpu", T.float16, True), {}),
    lambda T: ((T.ones(2),), {}),
    lambda T: ((), {}),
    lambda T: ((None,), {}),
    lambda T: ((), {"device": "meta", "non_blocking": True, "memory_format": T.channels_last}),
    lambda T: ((T.ones(2), True, True), {}),
    lambda T: (("cpu", T.float32, False, False), {}),
    lambda T: ((T.float32,), {"copy": False}),
]


@pytest.mark.parametrize("arguments", TO)
def test_arguments_of_to(arguments):
    def parsed(T):
        args, kwargs = arguments(T)
        return [str(part) for part in T._C._nn._parse_to(*args, **kwargs)]

    same(parsed)


def test_tracers_with_a_trace_of_their_own():

    def doubled(T):
        st = T.fx._symbolic_trace

        class Tracer(T.fx.Tracer):
            @st.compatibility(is_backward_compatible=True)
            def trace(self, root, concrete_args=None):
                self.root, self.graph, self.tensor_attrs = root, T.fx.Graph(), {}
                fn, args = self.create_args_for_root(type(root).forward, True, concrete_args)
                with st._Patcher() as patcher:
                    patcher.patch_method(T.nn.Module, "__call__", lambda module, x: x + 1, deduplicate=False)
                    self.create_node("output", "output", (self.create_arg(fn(*args)),), {})
                return self.graph

        graph = Tracer().trace(T.nn.Sequential(T.nn.ReLU(), T.nn.ReLU()))
        return [node.format_node() for node in graph.nodes], T.nn.ReLU()(T.ones(1) - 2).tolist()

    same(doubled)


def test_names_of_layouts():
    names = "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc _mkldnn jagged".split()
    assert [repr(getattr(rt, name)) for name in names] == [repr(getattr(torch, name)) for name in names]
    same(lambda T: T.ones(2).layout == T.sparse_csr)
    with pytest.raises(RuntimeError, match="no torch.sparse_csr"):
        rt.zeros(2, 2, layout=rt.sparse_csr)


def test_ranges_for_other_profilers():
    def entered(T, name, enabled):
        with getattr(T.autograd.profiler, name)(enabled) as range:
            return range

    for name in ("emit_nvtx", "emit_itt"):
        same(lambda T: entered(T, name, False))
    same(lambda T: entered(T, "emit_nvtx", True))
    assert outcome(lambda: entered(rt, "emit_itt", True)) == outcome(lambda: rt.profiler.itt.mark(""))


NAMED_TYPES = "complex32 chalf quint8 qint8 qint32 quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 float8_e8m0fnu float4_e2m1fn_x2"


def test_names_of_element_types():
    names = NAMED_TYPES.split() + [f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)]
    for name in names:
        for part in "itemsize is_floating_point is_complex is_signed".split():
            same(lambda T: getattr(getattr(T, name), part))
        same(lambda T: [str(getattr(T, name)), str(getattr(T, name).to_real()), isinstance(getattr(T, name), T.dtype)])
        for refused in (
            lambda t: rt.empty(2, dtype=t),
            lambda t: rt.ones(2).to(t),
            lambda t: rt.promote_types(t, rt.float32),
        ):
            with pytest.raises(NotImplementedError, match="no tensors of dtype"):
                refused(getattr(rt, name))


def test_settings_that_may_be_changed_for_a_while():
    from readtorch.backends import _settings

    before = _settings.Frozen.frozen
    try:
        rt.backends.disable_global_flags()
        with getattr(rt.backends, "__allow_nonbracketed_mutation")():
            rt.backends.cudnn.benchmark = rt.backends.cudnn.benchmark
        with pytest.raises(RuntimeError, match="after disable_global_flags"):
            rt.backends.cudnn.benchmark = True
    finally:
        _settings.Frozen.frozen = before
