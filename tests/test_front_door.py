"""What stands in `torch` itself beside operators: limits of dtypes, settings, old constructors, testing, cuda."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import readtorch
from readtorch.aten import context, parallel
from tests.programs import same

FACTS = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")


@pytest.mark.parametrize("dtype", readtorch.c10.scalar_type.ALL_TYPES, ids=repr)
def test_limits_of_every_dtype(dtype):
    def program(T, show):
        for info in (T.finfo, T.iinfo):
            show.error(lambda: info(getattr(T, dtype.name)))
        info = T.finfo if dtype.is_floating_point or dtype.is_complex else T.iinfo
        if dtype is not readtorch.bool:
            found = info(getattr(T, dtype.name))
            show(repr(found), [(name, getattr(found, name)) for name in FACTS if hasattr(found, name)])

    same(program)


def test_limits_are_values():
    def program(T, show):
        show(T.finfo(), T.finfo(float), T.iinfo(int), T.finfo(T.float32) == T.finfo(T.complex64))
        show(
            T.finfo(T.float32) == T.finfo(T.float64), T.finfo(T.float32) == 3, T.finfo(T.float16) != T.finfo(T.float32)
        )
        for wrong in (
            lambda: T.finfo(1),
            lambda: T.finfo("float32"),
            lambda: T.iinfo(float),
            lambda: setattr(T.finfo(), "max", 3),
        ):
            show.error(wrong)
        for wrong in (lambda: hash(T.finfo()), lambda: T.finfo(T.float64) < T.finfo(T.float32)):
            with pytest.raises(TypeError):
                wrong()

    same(program)


def test_constants_and_questions():
    def program(T, show):
        x = T.ones(2, 2)
        show(T.inf, T.nan, T.pi, T.e, T.newaxis, T.version.cuda, T.version.debug)
        for name in (
            "is_floating_point",
            "is_complex",
            "is_signed",
            "is_conj",
            "is_neg",
            "is_inference",
            "is_distributed",
        ):
            show(name, [getattr(T, name)(t) for t in (x, x.long(), x.bool(), x + 1j)], getattr(x, name)())
            show.error(lambda: getattr(T, name)(3))
        show(T.is_same_size(x, x.int()), T.is_same_size(x, x[0]), x.is_same_size(x), T.is_nonzero(x[0, 0]))
        show.error(lambda: T.is_same_size(x, 3))
        show(T.is_storage(x), T.is_storage(x.untyped_storage()), T.is_storage(x.storage()), T.is_tensor(x))
        show(x.is_pinned(), x.is_shared(), x.is_xpu, x.is_mps, x.is_vulkan, x.const_data_ptr() == x.data_ptr())
        show(hasattr(x, "__cuda_array_interface__"))
        show.error(lambda: x.long().__cuda_array_interface__)

    same(program)


def test_python_protocols_of_a_tensor():
    def program(T, show):
        x = T.arange(4.0).reshape(2, 2)
        show(list(reversed(x)), reversed(T.tensor(3)), T.ones(1).__nonzero__(), T.tensor(2.5).__long__(), x.__div__(2))
        show(np.sin(x), np.isnan(x), np.add(x, np.ones(2)))
        show.error(lambda: x.__delitem__(0))

    same(program)


# -- the old constructors ------------------------------------------------------------------------


NAMES = ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")


@pytest.mark.parametrize("name", [f"{name}Tensor" for name in NAMES])
def test_tensor_types(name):
    def program(T, show):
        kind = getattr(T, name)
        show(kind, kind.dtype, kind.layout, kind.is_cuda, kind([1, 0, 2]), kind(), kind(2, 3).shape, kind([[1.5], [2]]))
        x = T.tensor([1, 2], dtype=kind.dtype)
        show(kind(x), kind(x).data_ptr() == x.data_ptr(), kind(x.untyped_storage()), kind(T.Size([3])).shape)
        show(isinstance(x, kind), isinstance(x.to(T.complex64), kind), isinstance(3, kind), issubclass(kind, T.Tensor))
        show(T.ones(2).type(kind), T.ones(2).type(f"torch.{name}"), T.ones(2).to(kind.dtype).type())
        show(x.new([1, 2.5]), x.new(), x.new(2, 3).dtype, x.new(x), x.new(device="cpu"), kind(size=(2, 3)).shape)
        for arguments in (("a",), (1.5,), (True,), ({},), (2, "a"), (T.ones(2, dtype=T.complex64),)):
            show.error(lambda: kind(*arguments))
            show.error(lambda: x.new(*arguments))
        show.error(lambda: kind(2, device="cuda"))
        show.error(lambda: getattr(T.cuda, name)(2))

    same(program)


def test_a_storage_becomes_a_tensor():
    def program(T, show):
        x = T.ones(2, 2)
        y = x.new(x.storage())
        y[0] = 5
        show(x, y, y.untyped_storage() == x.untyped_storage())
        show.error(lambda: T.LongTensor(x.storage()))
        show.error(lambda: x.type("foo"))

    same(program)


def test_set_default_tensor_type():
    def program(T, show):
        try:
            show.warnings(lambda: T.set_default_tensor_type(T.DoubleTensor))
            show(T.ones(1).dtype)
            T.set_default_tensor_type("torch.FloatTensor")
            show(T.ones(1).dtype)
            for wrong in (T.LongTensor, "torch.LongTensor", 3, T.float32, "torch.cuda.FloatTensor"):
                show.error(lambda: T.set_default_tensor_type(wrong))
        finally:
            T.set_default_dtype(T.float32)

    torch.set_warn_always(True)  # PyTorch's C++ warns once a process
    try:
        same(program)
    finally:
        torch.set_warn_always(False)


def test_a_function_for_every_element():
    def program(T, show):
        x, y = T.arange(6.0).reshape(2, 3), T.tensor([1.0, 2.0, 3.0])
        show(x.t().apply_(lambda v: v + 1), x, x._version)
        show(x.map_(y, lambda a, b: a * b), x.map2_(y, x, lambda a, b, c: a + b - c))
        show(T.arange(3).apply_(lambda v: v + 1.5), T.tensor(True).apply_(lambda v: not v))
        leaf = T.ones(3, requires_grad=True)
        for wrong in (
            lambda: x.apply_(3),
            lambda: leaf.apply_(abs),
            lambda: x.map_(leaf, max),
            lambda: x.map_(3, max),
            lambda: x.map_(y.long(), max),
            lambda: x.map2_(y, y.int(), max),
            lambda: x.map_(T.ones(2), max),
            lambda: T.arange(3).apply_(lambda v: "a"),
        ):
            show.error(wrong)

    same(program)


# -- settings ------------------------------------------------------------------------------------


@pytest.fixture
def settings_put_back(monkeypatch):
    monkeypatch.setattr(parallel, "_num_threads", parallel.get_num_threads())
    monkeypatch.setattr(parallel, "_num_interop_threads", None)
    monkeypatch.setattr(context.context, "deterministic", False)
    before = torch.get_num_threads()
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(before)


def test_numbers_of_threads(settings_put_back):
    def program(T, show):
        T.set_num_threads(2)
        show(T.get_num_threads())
        T.set_num_threads(1)
        show(T.get_num_threads(), type(T.get_num_interop_threads()))
        for wrong in (0, -1, "a", True, 1.5):
            show.error(lambda: T.set_num_threads(wrong))
            show.error(lambda: T.set_num_interop_threads(wrong))

    same(program)


@pytest.mark.parametrize("threads", [1, 2])
def test_blas_leaves_the_cores_to_the_one_pool(settings_put_back, threads):
    import threadpoolctl

    readtorch.set_num_threads(threads)
    readtorch.addmm(readtorch.ones(4), readtorch.ones(4, 4), readtorch.ones(4, 4))
    assert {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"} == {1}


def test_the_number_for_operators_beside_each_other_is_set_once(settings_put_back):
    readtorch.set_num_interop_threads(3)
    assert readtorch.get_num_interop_threads() == 3
    with pytest.raises(RuntimeError, match="cannot set number of interop threads"):
        readtorch.set_num_interop_threads(3)


def test_determinism_is_kept(settings_put_back):
    def program(T, show):
        def tell():
            show(
                T.are_deterministic_algorithms_enabled(),
                T.is_deterministic_algorithms_warn_only_enabled(),
                T.get_deterministic_debug_mode(),
            )

        for set_it in (
            lambda: T.use_deterministic_algorithms(True),
            lambda: T.set_deterministic_debug_mode("warn"),
            lambda: T.use_deterministic_algorithms(True, warn_only=True),
            lambda: T.set_deterministic_debug_mode(2),
            lambda: T.use_deterministic_algorithms(False),
            lambda: T.set_deterministic_debug_mode("default"),
        ):
            set_it()
            tell()
        for wrong in ("foo", 7, 1.5):
            show.error(lambda: T.set_deterministic_debug_mode(wrong))
        show.error(lambda: T.use_deterministic_algorithms(3))
        show.error(lambda: T.use_deterministic_algorithms(True, warn_only=3))

    same(program)


def test_precision_of_products():
    def program(T, show):
        try:
            T.set_float32_matmul_precision("high")
            show.warnings(lambda: T.set_float32_matmul_precision("foo"))
            show(T.get_float32_matmul_precision())
        finally:
            T.set_float32_matmul_precision("highest")

    torch.set_warn_always(True)
    try:
        same(program)
    finally:
        torch.set_warn_always(False)


def test_what_is_said_once_a_process():
    """In a process of its own: what has been said cannot be taken back."""
    program = """
import sys, warnings
import numpy as np
T = __import__(sys.argv[1])
sealed = np.ones(1)
sealed.flags.writeable = False
calls = {
    "T": lambda: T.ones(1, 2, 3).T, "cross": lambda: T.cross(T.eye(3), T.eye(3)), "meshgrid": lambda: T.meshgrid(T.ones(2)),
    "from_numpy": lambda: T.from_numpy(sealed), "plain": lambda: T.add(Plain(), 1),
    "grad": lambda: (T.ones(1, requires_grad=True) * 2).grad, "uint8": lambda: T.ones(1)[T.ones(1, dtype=T.uint8)],
    "same": lambda: T.nn.functional.conv1d(T.ones(1, 1, 8), T.ones(1, 1, 4), padding="same"),
}
class Plain:
    def __torch_function__(self, *rest):
        return 1
def said(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return len(caught)
for always in (False, True, False):
    T.set_warn_always(always)
    print(T.is_warn_always_enabled(), [(name, said(call), said(call)) for name, call in calls.items()])
try:
    T.set_warn_always(1)
except Exception as error:
    print(type(error).__name__, error)
"""
    theirs, ours = (
        subprocess.run([sys.executable, "-c", program, name], capture_output=True, text=True, check=True).stdout
        for name in ("torch", "readtorch")
    )
    assert ours == theirs


MAKERS = ("zeros", "ones", "empty", "rand", "randn", "randperm", "arange", "eye", "linspace")


def test_devices_as_text():
    def program(T, show):
        for text in (
            "cpu",
            "cuda:0",
            "cpu:10",
            "",
            ":1",
            "cuda:",
            "cuda:01",
            "cuda:x",
            "cuda:1:2",
            "cuda:²",
            "cu da",
            "float33",
            "foo",
            "foo:1",
            "foo:x",
            "_x",
            "CPU",
        ):
            show.error(lambda: show(T.device(text), T.device(text).index))

    same(program)


def test_import_reaches_what_it_does_there():
    code = "import sys, {0}\nprint({0}.utils.checkpoint.checkpoint.__name__, {0}.utils.data.DataLoader.__name__, 'jit' in dir({0}))"
    for library in ("torch", "readtorch"):
        done = subprocess.run([sys.executable, "-c", code.format(library)], capture_output=True, text=True)
        assert done.stdout == "checkpoint DataLoader True\n", done.stderr


def test_default_device():
    def program(T, show):
        def tell():
            show.error(T.get_default_device)
            for name in MAKERS:
                show.error(lambda: getattr(T, name)(*((0, 1, 3) if name == "linspace" else (2,))))
            show.error(lambda: T.tensor([1]))
            show.error(lambda: T.full((2,), 1.0))
            show(T.zeros(2, device="cpu"))

        try:
            tell()
            T.set_default_device("cuda")
            tell()
            with T.device("cpu"):
                tell()
            T.set_default_device(None)
            tell()
            with T.device("cuda") as place:
                show(place)
                tell()
            show.error(lambda: T.set_default_device("foo"))
            show(T.get_default_device())
        finally:
            T.set_default_device(None)

    same(program)


def test_cuda_is_not_there():
    def program(T, show):
        cuda = T.cuda
        show(
            cuda.is_available(),
            cuda.device_count(),
            cuda.is_initialized(),
            cuda.is_bf16_supported(),
            cuda.get_arch_list(),
        )
        show(
            cuda.manual_seed(1), cuda.manual_seed_all(1), cuda.seed_all(), cuda.empty_cache(), cuda.get_rng_state_all()
        )
        show(cuda.memory_allocated(), cuda.max_memory_allocated(), cuda.memory_reserved(), cuda.max_memory_reserved())
        for name in (
            "current_device",
            "synchronize",
            "get_device_name",
            "get_device_capability",
            "init",
            "current_stream",
            "default_stream",
            "initial_seed",
            "get_rng_state",
        ):
            show.error(getattr(cuda, name))
        show.error(lambda: cuda.get_device_properties(0))
        for use in (
            lambda: T.ones(1).cuda(),
            lambda: T.ones(1).to("cuda"),
            lambda: T.zeros(2, device="cuda:1"),
            lambda: T.nn.Linear(1, 1).cuda(),
        ):
            show.error(use)

    same(program)


# -- readtorch.testing ---------------------------------------------------------------------------


def test_assert_close():
    nan = float("nan")

    def program(T, show):
        x = T.tensor([[1.0, 2.0], [3.0, 4.0]])
        b = T.tensor([True, False])
        pairs = [
            (1, 2),
            (1, 1),
            (1.0, 1),
            (1.0, 1.0 + 1e-9),
            (nan, nan),
            (2j, 1j),
            (True, False),
            (True, True),
            (0.5, 0),
            (x, x + 1e-7),
            (x, x + 1),
            (x, 2 * x),
            (x, x[0]),
            (x, x.double()),
            (x, x.long()),
            (x, x.t().contiguous().t()),
            (x.long(), x.long() + 1),
            (x.half(), x.half() + 1),
            (x.to(T.complex64), x + 1j),
            (b, ~b),
            (x[0, 0], x[1, 1]),
            (T.tensor(nan), T.tensor(nan)),
            (x, T.tensor([[1.0, nan], [3.0, 4.0]])),
            (x, None),
            (None, None),
            ([x, x], [x, x + 1]),
            ((x,), [x + 1]),
            ([1], [1, 2]),
            ({"a": x}, {"a": x + 1}),
            ({"a": 1}, {"b": 1}),
            ({"a": [1, {2: x}]}, {"a": [1, {2: x - 1}]}),
            ("a", "b"),
            (np.ones(2), np.ones(2) * 2),
            (np.float32(1), 2.0),
            (x.to(T.float8_e5m2), x.to(T.float8_e5m2)),
            (x.to(T.float8_e5m2), (x + 1).to(T.float8_e5m2)),
            (object, 3),
            (x.to(T.uint16), (x + 1).to(T.uint16)),
            (T.ones(0), T.ones(0)),
            (x.detach().requires_grad_(), x + 1),
        ]
        for actual, expected in pairs:
            for options in (
                {},
                {"equal_nan": True, "check_dtype": False},
                {"rtol": 0, "atol": 0.5},
                {"check_stride": True},
            ):
                show.error(lambda: T.testing.assert_close(actual, expected, **options))
        show.error(lambda: T.testing.assert_close(x, x + 1, msg="hello"))
        show.error(lambda: T.testing.assert_close([x], [x + 1], msg=lambda text: f"Before\n{text}\nafter"))
        show.error(lambda: T.testing.assert_close([1], [2, 3], msg="unused"))
        show.error(lambda: T.testing.assert_close(x, x, rtol=0.1))
        for unrelated in (
            lambda: T.testing.assert_close(x, T.nn.Parameter(x), allow_subclasses=False),
            lambda: T.testing.assert_close(x, 3),
        ):
            with pytest.raises(TypeError, match="No comparison pair was able to handle"):
                unrelated()
        show.error(lambda: T.testing.assert_close(x, T.nn.Parameter(x)))

    same(program)
