"""`nn.init` next to the reference: the same numbers from the same seed, the same errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.programs import same

SHAPES = [(4,), (3, 5), (5, 3), (2, 3, 3), (4, 2, 3, 3), (2, 2, 3, 3, 3), (20, 30), (0, 3)]
FUNCTIONS = [
    ("uniform_", {}),
    ("uniform_", {"a": -2.0, "b": 3.0}),
    ("normal_", {}),
    ("normal_", {"mean": 1.0, "std": 0.1}),
    ("trunc_normal_", {}),
    ("trunc_normal_", {"std": 0.02}),
    ("trunc_normal_", {"a": 2.0, "b": 3.0}),
    ("constant_", {"val": 0.3}),
    ("ones_", {}),
    ("zeros_", {}),
    ("eye_", {}),
    ("dirac_", {}),
    ("dirac_", {"groups": 2}),
    ("xavier_uniform_", {}),
    ("xavier_uniform_", {"gain": 2.0}),
    ("xavier_normal_", {}),
    ("kaiming_uniform_", {}),
    ("kaiming_uniform_", {"a": 2.0, "mode": "fan_out"}),
    ("kaiming_uniform_", {"nonlinearity": "relu"}),
    ("kaiming_normal_", {}),
    ("kaiming_normal_", {"mode": "FAN_OUT"}),
    ("kaiming_normal_", {"mode": "both"}),
    ("kaiming_normal_", {"nonlinearity": "other"}),
    ("sparse_", {"sparsity": 0.3}),
    ("orthogonal_", {}),
    ("orthogonal_", {"gain": 2.0}),
]


@pytest.mark.parametrize("name, kwargs", FUNCTIONS, ids=lambda v: v if isinstance(v, str) else "-".join(map(str, v)))
def test_same_numbers(name, kwargs):
    def program(T, show):
        for shape in SHAPES:
            for dtype in (T.float32, T.float64):
                p = T.nn.Parameter(T.empty(shape, dtype=dtype))

                def fill():
                    result = getattr(T.nn.init, name)(p, **kwargs)
                    show(result is p, p.requires_grad, p.grad_fn, p.is_leaf)
                    show.numbers(p)

                show.warnings(lambda: show.error(fill))
        show(T.rand(1).item())  # as many random numbers were used

    same(program, rtol=1e-5 if name == "orthogonal_" else 0)  # QR libraries round differently


def test_generator():
    def program(T, show):
        for name in ("uniform_", "normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_"):
            generator = T.Generator()
            generator.manual_seed(3)
            show.numbers(getattr(T.nn.init, name)(T.empty(3, 4), generator=generator))

    same(program, rtol=0)


@given(
    st.sampled_from(["linear", "conv1d", "conv_transpose3d", "sigmoid", "tanh", "relu", "leaky_relu", "selu", "x"]),
    st.sampled_from([None, 0, 1, 0.2, -3.0, True, "text"]),
)
def test_gain(nonlinearity, param):
    same(lambda T, show: show.error(lambda: show(T.nn.init.calculate_gain(nonlinearity, param))))


def test_deprecated_names():
    def program(T, show):
        for name in (
            "uniform",
            "normal",
            "eye",
            "dirac",
            "xavier_uniform",
            "xavier_normal",
            "kaiming_uniform",
            "kaiming_normal",
        ):
            function = getattr(T.nn.init, name)
            show.warnings(lambda: show.error(lambda: show.numbers(function(T.empty(3, 3)))))
            show(function.__name__)

    same(program)


def test_layers_start_with_the_same_weights():
    def program(T, show):
        for layer in (
            T.nn.Linear(7, 5),
            T.nn.Linear(3, 2, bias=False),
            T.nn.Bilinear(2, 3, 4),
            T.nn.LayerNorm((2, 3)),
            T.nn.PReLU(3),
            T.nn.Linear(3, 2, dtype=T.float64),
            T.nn.LayerNorm(4, bias=False),
            T.nn.LayerNorm(4, elementwise_affine=False),
        ):
            show(layer)
            show.numbers(*layer.state_dict().values())
        show.error(lambda: T.nn.Bilinear(0, 3, 4))
        show.warnings(lambda: show(T.nn.Linear(0, 2)))

    same(program, rtol=0)


def test_other_dtypes_and_layouts():
    arguments = {"sparse_": (0.4,), "constant_": (2.5,)}
    names = [n for n, kwargs in FUNCTIONS if not kwargs or n in arguments]

    def program(T, show):
        for name in dict.fromkeys(names):
            for dtype in (T.float16, T.bfloat16, T.int64, T.complex64, T.bool):
                for t in (
                    T.empty(6, 8, dtype=dtype),
                    T.empty(8, 6, dtype=dtype).t(),
                    T.empty(3, 40, dtype=dtype)[:, ::2],
                    T.empty((), dtype=dtype),
                ):

                    def fill():
                        getattr(T.nn.init, name)(t, *arguments.get(name, ()))
                        show.numbers(T.view_as_real(t) if dtype.is_complex else t)

                    show.warnings(lambda: show.error(fill))

    same(program, rtol=1e-5)
