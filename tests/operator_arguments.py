"""Arguments that an operator accepts, found from its schema: PyTorch itself says whether they will do.

`arguments_of(operator)` gives a list of arguments, in the schema's order and made of torch's objects, with which
the operator of that name runs in PyTorch; BY_HAND holds those that guessing by type does not find. With it a
test can call every operator that has some property, and none can be forgotten.
"""

import functools
import itertools
import warnings

import torch

from readtorch.aten.dispatcher import registry

MOST_GUESSES = 3000


def written_operators():
    """Names of all operators that write to one of their arguments: in-place and out=, those of CPU tensors."""
    return [
        name
        for name, operator in registry.items()
        if any(a.type.writes for a in operator.schema.arguments) and theirs(name) is not None
    ]


def theirs(name):
    """PyTorch's operator of the name, or None."""
    name, _, overload = name.removeprefix("aten::").partition(".")
    packet = getattr(torch.ops.aten, name, None)
    return getattr(packet, overload or "default", None)


def call_theirs(name, arguments):
    """PyTorch's operator, called with the arguments of ours. (Where ours also has a dtype, theirs takes out's.)"""
    parameters = theirs(name)._schema.arguments
    given = dict(zip([a.name for a in registry[name].schema.arguments], arguments))
    if len(parameters) == len(arguments):  # names of outputs may differ
        given = dict(zip([a.name for a in parameters], arguments))
    parameters = [a for a in parameters if a.name in given]
    positional = [given[a.name] for a in parameters if not a.kwarg_only]
    return theirs(name)(*positional, **{a.name: given[a.name] for a in parameters if a.kwarg_only})


@functools.cache
def arguments_of(name):
    """Arguments with which PyTorch's operator runs, or None. Do not change them: copy them first."""
    if name in BY_HAND:
        return BY_HAND[name]()
    for guess in itertools.islice(guesses(registry[name].schema.arguments), MOST_GUESSES):
        if runs(name, guess):
            return guess
    return None


def runs(name, arguments):
    copies = [torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, a) for a in arguments]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call_theirs(name, copies)
        except Exception:
            return False
    return True


def guesses(parameters):
    """Lists of arguments, the most usual first: a value of its own for each type, then other ones."""
    kinds = [parameter for parameter in parameters if not parameter.type.writes or parameter.name == "self"]
    tensors = sum(p.type.is_tensor for p in kinds)
    for scene in SCENES:
        if len(scene) > 1 and tensors < 2:
            continue
        numbers = [values_of(p) for p in kinds if not p.type.is_tensor]
        for picked in itertools.product(*numbers):
            rest, given = iter(picked), itertools.cycle(scene)
            values = [tensor_value(p, next(given)) if p.type.is_tensor else next(rest) for p in kinds]
            for outs in itertools.product(OUTPUTS, repeat=len(parameters) - len(kinds)):
                yield values + [[out()] if p.type.is_list else out() for p, out in zip(parameters[len(kinds) :], outs)]


def square():
    return torch.tensor([[4.0, 0.5, 0.25], [0.5, 3.0, 0.75], [0.25, 0.75, 2.0]])


def vector():
    return torch.tensor([0.5, 0.25, 0.75])


def long():
    return torch.tensor([0, 2, 1])


def longs():
    return torch.tensor([[0, 2, 1], [1, 0, 2], [2, 1, 0]])


def boolean():
    return torch.tensor([[True, False, True]] * 3)


def cube():
    return torch.linspace(0, 1, 48).reshape(2, 3, 8)


def images():
    return torch.linspace(0, 1, 128).reshape(1, 2, 8, 8)


def volumes():
    return torch.linspace(0, 1, 1024).reshape(1, 2, 8, 8, 8)


def complexes():
    return square() * (1 + 1j)


def number():
    return torch.tensor(0.5)


def batches():
    return torch.stack([square()] * 3)


SCENES = [
    (square,),
    (vector,),
    (longs,),
    (boolean,),
    (square, boolean),
    (square, longs),
    (square, vector, vector),
    (vector, square, vector),
    (vector, square),
    (cube,),
    (images,),
    (volumes,),
    (complexes,),
    (vector, long, vector),
    (square, vector, square),
    (square, longs, square),
    (vector, long),
    (square, long),
    (square, square, longs),
    (square, long, square),
    (images, vector),
    (cube, vector),
    (square, longs, vector),
    (long, vector),
    (square, number),
    (square, boolean, number),
    (square, long, number),
    (batches,),
    (square, batches, batches),
    (number,),
]


def of_type(dtype):
    return lambda: torch.empty(0, dtype=dtype)


OUTPUTS = list(map(of_type, [torch.float32, torch.int64, torch.int32, torch.bool, torch.complex64, torch.float64]))

VALUES = {
    "Scalar": [1, 0.5],
    "float": [0.5, 1.0],
    "int": [1, 0, 2],
    "bool": [False, True],
    "str": ["mean", "floor", "L", "fro", "add"],
    "ScalarType": [torch.float32],
    "Generator": [None],
    "MemoryFormat": [torch.contiguous_format],
    "Layout": [None],
    "Device": [None],
}


def values_of(parameter):
    """The values that are tried for an argument that is no tensor; its default, if it has one."""
    kind = parameter.type
    if parameter.has_default and (kind.base == "str" or not isinstance(parameter.default, str)):
        fills = kind.is_list and kind.size and type(parameter.default) in (int, bool)
        return [[parameter.default] * kind.size if fills else parameter.default]
    if kind.optional:
        return [None]
    if kind.is_list:
        size = kind.size or 2
        return [[v] * n for n in ((1, size) if size > 1 else (1, 2)) for v in VALUES[kind.base][:2]]
    return VALUES[kind.base]


def tensor_value(parameter, make):
    if parameter.type.is_list:
        return [make(), make()]
    return None if parameter.type.optional else make()


# What guessing does not find, and what PyTorch does not survive being asked in the wrong way.


def batch_norm(*between):
    def arguments():
        return [square(), vector(), vector(), vector(), vector(), *between, 0.1, 1e-5]

    return arguments


def lists(count, *rest):
    return lambda: [[square(), vector()] for _ in range(count)] + [*rest]


def factored(count):
    """An LU factorization, its pivots and a right side, then empty outputs."""

    def arguments():
        return [*torch.linalg.lu_factor(square()), *[square()] * (count == 1), *[True] * 2, *[torch.empty(0)] * count]

    return arguments


def steps():
    return [torch.tensor(1.0), torch.tensor(1.0)]


def adam():
    return [*lists(4)(), [], steps(), 0.1, 0.9, 0.99, 0.0, 1e-8, False, False, None, None]


def out(*arguments, dtypes=(torch.float32,)):
    """The arguments, of which those that are functions make tensors, and an empty output for each dtype."""
    return lambda: [a() if callable(a) else a for a in arguments] + [torch.empty(0, dtype=dtype) for dtype in dtypes]


def pooled():
    return torch.arange(8).reshape(1, 2, 2, 2) * 2


def three_lists():
    return [*lists(3)(), torch.tensor([0.5, 0.25])]


def sobol(*between):
    """The direction numbers of two dimensions, as what is written to or as what is read."""

    def arguments():
        state = torch._sobol_engine_initialize_state_(torch.zeros(2, 30, dtype=torch.int64), 2)
        return [state if a is sobol else a() if callable(a) else a for a in between]

    return arguments


BY_HAND = {
    "aten::_sobol_engine_initialize_state_": sobol(sobol, 2),
    "aten::_sobol_engine_scramble_": sobol(sobol, lambda: torch.ones(2, 30, 30, dtype=torch.int64).tril(), 2),
    "aten::_sobol_engine_ff_": sobol(lambda: torch.zeros(2, dtype=torch.int64), 3, sobol, 2, 5),
    **dict.fromkeys(
        [f"aten::_foreach_{name}.Tensor" for name in ("addcdiv", "addcdiv_", "addcmul", "addcmul_")], three_lists
    ),
    "aten::_native_batch_norm_legit": batch_norm(True),
    "aten::_batch_norm_with_update": batch_norm(),
    "aten::_native_batch_norm_legit.out": lambda: batch_norm(True)() + [torch.empty(0) for _ in range(3)],
    "aten::native_batch_norm.out": lambda: batch_norm(True)() + [torch.empty(0) for _ in range(3)],
    "aten::_native_batch_norm_legit.no_stats_out": out(
        square, vector, vector, True, 0.1, 1e-5, dtypes=[torch.float32] * 3
    ),
    "aten::hash_tensor.out": out(square, [], False, 0, dtypes=[torch.uint64]),
    "aten::clamp_.Tensor": out(square, square, None, dtypes=[]),
    "aten::clamp.Tensor_out": out(square, square, None),
    "aten::clamp_": out(square, 0.5, None, dtypes=[]),
    "aten::clamp.out": out(square, 0.5, None),
    "aten::_coalesced_": lambda: [square().to_sparse(), True],
    "aten::_fused_adagrad_": lambda: [*lists(3)(), steps(), 0.1, 0.0, 0.0, 1e-8, False, None, None],
    "aten::_fused_adam_": adam,
    "aten::_fused_adamw_": adam,
    "aten::_fused_sgd_": lists(3, 0.0, 0.9, 0.1, 0.0, False, False, False, None, None),
    "aten::_amp_foreach_non_finite_check_and_unscale_": lambda: [
        [square(), vector()],
        torch.zeros(()),
        torch.tensor(0.5),
    ],
    "aten::_amp_update_scale_": lambda: [
        torch.tensor(4.0),
        torch.zeros((), dtype=torch.int32),
        torch.zeros(()),
        2.0,
        0.5,
        2,
    ],
    "aten::im2col.out": out(images, [2, 2], [1, 1], [0, 0], [1, 1]),
    "aten::col2im.out": out(lambda: torch.ones(1, 8, 49), [8, 8], [2, 2], [1, 1], [0, 0], [1, 1]),
    "aten::linalg_lu_solve.out": lambda: [*torch.linalg.lu_factor(square()), square(), True, False, torch.empty(0)],
    "aten::lu_solve.out": lambda: [square(), *torch.linalg.lu_factor(square()), torch.empty(0)],
    "aten::lu_unpack.out": lambda: [*torch.linalg.lu_factor(square()), True, True, *(torch.empty(0) for _ in "PLU")],
    "aten::linalg_ldl_solve.out": lambda: [*torch.linalg.ldl_factor(square()), square(), False, torch.empty(0)],
    "aten::linalg_tensorinv.out": out(lambda: square().reshape(3, 1, 3, 1), 2),
    "aten::nll_loss2d.out": out(images, lambda: torch.zeros(1, 8, 8, dtype=torch.int64), None, 1, -100),
    "aten::max_unpool2d.out": out(lambda: pooled().float(), pooled, [4, 4]),
    "aten::max_unpool3d.out": out(
        lambda: pooled()[None].float(), lambda: pooled()[None], [2, 4, 4], [1, 2, 2], [0, 0, 0]
    ),
    "aten::rrelu_with_noise": out(square, square, 0.125, 0.25, True, None, dtypes=[]),
    "aten::rrelu_with_noise_": out(square, square, 0.125, 0.25, True, None, dtypes=[]),
    "aten::split_copy.Tensor_out": lambda: [square(), 2, 0, [torch.empty(2, 3), torch.empty(1, 3)]],
    "aten::as_strided_scatter.out": out(square, vector, [3], [1], 0),
    "aten::view_as_complex_copy.out": out(lambda: torch.ones(3, 2), dtypes=[torch.complex64]),
    "aten::view_copy.out": out(square, [9]),
    "aten::expand_copy.out": out(vector, [3, 3], False),
    "aten::embedding_dense_backward.out": out(square, long, 3, -1, False),
    "aten::_fft_c2c.out": out(complexes, [1], 0, True, dtypes=[torch.complex64]),
    "aten::_fft_c2r.out": out(complexes, [1], 0, 3),
    "aten::linalg_matrix_rank.out": out(square, 0.5, False, dtypes=[torch.int64]),
    "aten::linalg_matrix_rank.atol_rtol_float_out": out(square, None, None, False, dtypes=[torch.int64]),
    "aten::linalg_matrix_rank.atol_rtol_tensor_out": out(square, None, None, False, dtypes=[torch.int64]),
    "aten::linalg_lstsq.out": out(
        square, square, None, None, dtypes=[torch.float32, torch.float32, torch.int64, torch.float32]
    ),
    "aten::normal.Tensor_float_out": lambda: [vector(), 0.5, None, vector()],
}
