"""Where something lies, and what says so: devices, indices on the Meta device, numbers that a type does not have, denormals."""

import pytest

from tests.programs import same


@pytest.mark.parametrize(
    "arguments",
    [
        ("cpu", "a"),
        ("cpu", 1.5),
        ("cpu", True),
        ("cpu", None),
        ("cpu", [0]),
        ("cpu", 0),
        ("cpu", -1),
        ("cuda", -2),
        ("cpu:0", 0),
        (0, 0),
        (None, 0),
        (None,),
        (1.5,),
        (True,),
    ],
)
def test_device(arguments):
    def program(T, show):
        show.error(lambda: T.device(*arguments))
        show.error(lambda: T.device(T.device("cpu"), 0))

    same(program)


def test_a_tensor_is_the_index_of_a_device():
    def program(T, show):
        show(T.device("cpu", T.tensor(0)))
        show.error(lambda: T.device("cpu", T.tensor(0.5)))

    same(program)


def test_an_index_on_meta_leaves_the_result_where_the_tensor_is():
    def program(T, show):
        x, i = T.ones(3, 2), T.tensor([0, 1], device="meta")
        for result in (x[i], x[i, T.tensor([0, 0])], x.to("meta")[i], x.to("meta")[T.tensor([2])]):
            show(result.device, result.shape, result.stride())

    same(program)


NUMBERS = (
    70000,
    65519,
    65520,
    2**31,
    -(2**63),
    2**63,
    1e39,
    -1e300,
    3.5e38,
    float("inf"),
    True,
    2 + 0j,
    1 + 2j,
    2.5,
    -1,
)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "bool", "int8", "uint8", "int64", "complex64"])
def test_numbers_assigned_and_filled(dtype):
    def program(T, show):
        def assigned(i, number):
            x = T.zeros(2, 2, dtype=getattr(T, dtype))
            x[i] = number
            return x.tolist()

        def said(function):
            try:
                show(function())
            except Exception as error:
                show(type(error).__name__, error)

        for number in NUMBERS:
            for i in (0, ..., (1, 1), T.tensor([True, False]), T.tensor([1])):
                said(lambda: assigned(i, number))
            if dtype != "bool" or type(number) is not complex:
                said(lambda: T.zeros(2, dtype=getattr(T, dtype)).fill_(number).tolist())

    same(program)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_flush_denormal(dtype):
    def program(T, show):
        x = T.full((100,), 1e-310 if dtype == "float64" else 1e-42, dtype=getattr(T, dtype))
        try:
            show(T.set_flush_denormal(True), (x * 0.5).tolist()[::50])
        finally:
            show(T.set_flush_denormal(False), (x * 0.5).tolist()[::50])
        for wrong in (1, None, "on"):
            show.error(lambda: T.set_flush_denormal(wrong))

    same(program)


DTYPES = "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 bool uint16 uint32 uint64 complex64 complex128 float8_e5m2 float8_e4m3fn"


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("dtype", DTYPES.split())
def test_names_of_types_in_errors(dtype, device):
    def program(T, show):
        x = T.empty(2, 3, dtype=getattr(T, dtype), device=device)
        show(x.type())
        show.error(lambda: x.expand(2))

    same(program)


@pytest.mark.parametrize("number", [0.5, 250.0, -1e30, 1e300, float("inf")])
@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64"])
def test_a_tensor_as_a_factor(dtype, number):
    """A number may come in a tensor of no dimensions, as in LBFGS."""

    def program(T, show):
        x = T.ones(3, dtype=getattr(T, dtype))
        show.error(lambda: x.clone().add_(x, alpha=T.tensor(number, dtype=T.float64)))
        show.error(lambda: x.clone().addcmul_(x, x, value=T.tensor(number, dtype=T.float64)))

    same(program)
