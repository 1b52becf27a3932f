"""Views, joins and copies against the reference: values, strides, aliasing, nodes, gradients, errors."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch as rt
from tests.reference import both, tensors


def matrix(**kwargs):
    return torch.arange(12.0).reshape(3, 4).requires_grad_(**kwargs)


VIEWS = {
    "view": lambda T, x: x.view(2, 6),
    "view_infer": lambda T, x: x.view(-1, 3),
    "reshape": lambda T, x: x.reshape(4, 3),
    "reshape_copy": lambda T, x: x.t().reshape(12),
    "reshape_alias": lambda T, x: x[:, :2].reshape(3, 2, 1),
    "expand": lambda T, x: x.expand(2, -1, 4),
    "expand_new_one": lambda T, x: x.expand(1, 3, 4),
    "expand_as": lambda T, x: x[0].expand_as(x),
    "broadcast_to": lambda T, x: T.broadcast_to(x, (2, 3, 4)),
    "squeeze": lambda T, x: x.view(1, 3, 1, 4).squeeze(),
    "squeeze_dim": lambda T, x: x.view(1, 3, 1, 4).squeeze(2),
    "squeeze_dims": lambda T, x: x.view(1, 3, 1, 4).squeeze((0, 1, 2)),
    "squeeze_nothing": lambda T, x: x.squeeze(0),
    "unsqueeze": lambda T, x: x.unsqueeze(-1),
    "unsqueeze_t": lambda T, x: x.t().unsqueeze(2),
    "transpose": lambda T, x: x.transpose(0, -1),
    "swapaxes": lambda T, x: x.swapaxes(0, 1),
    "t": lambda T, x: x.t(),
    "T": lambda T, x: x.T,
    "mT": lambda T, x: x.mT,
    "H": lambda T, x: x.H,
    "adjoint": lambda T, x: x.adjoint(),
    "permute": lambda T, x: x.view(3, 2, 2).permute(2, 0, 1),
    "movedim": lambda T, x: x.view(3, 2, 2).movedim((0, 1), (2, 0)),
    "flatten": lambda T, x: x.view(3, 2, 2).flatten(1),
    "unflatten": lambda T, x: x.unflatten(1, (2, -1)),
    "ravel": lambda T, x: x.t().ravel(),
    "narrow": lambda T, x: x.narrow(1, -3, 2),
    "select": lambda T, x: x.select(1, -1),
    "unbind": lambda T, x: x.unbind(1),
    "chunk": lambda T, x: x.chunk(3, 1),
    "split": lambda T, x: x.split(3, 1),
    "split_sizes": lambda T, x: x.split([1, 3], 1),
    "tensor_split": lambda T, x: x.tensor_split(3, 1),
    "hsplit": lambda T, x: x.hsplit(2),
    "unfold": lambda T, x: x.unfold(1, 3, 1),
    "diagonal": lambda T, x: x.diagonal(1),
    "diag": lambda T, x: T.diag(x),
    "diag_embed": lambda T, x: T.diag_embed(x, 1),
    "tril": lambda T, x: x.tril(-1),
    "triu": lambda T, x: x.triu(1),
    "as_strided": lambda T, x: x.as_strided((2, 3), (4, 1), 2),
    "as_strided_overlap": lambda T, x: x.as_strided((3, 3), (1, 1), 1),
    "as_strided_of_expanded": lambda T, x: x[0].expand(3, 4).as_strided((2, 3), (0, 1)),
    "clone": lambda T, x: x.t().clone(),
    "contiguous": lambda T, x: x.t().contiguous(),
    "repeat": lambda T, x: x.repeat(2, 1, 3),
    "tile": lambda T, x: x.tile(2),
    "repeat_interleave": lambda T, x: x.repeat_interleave(2, 1),
    "repeat_interleave_each": lambda T, x: x.repeat_interleave(T.tensor([1, 0, 2]), 0),
    "flip": lambda T, x: x.flip(0, 1),
    "roll": lambda T, x: x.roll((1, 2), (0, 1)),
    "rot90": lambda T, x: x.rot90(3, (0, 1)),
    "cat": lambda T, x: T.cat([x, x[:1], T.zeros(0)]),
    "stack": lambda T, x: T.stack([x, x], -1),
    "hstack": lambda T, x: T.hstack([x[0], x[1]]),
    "vstack": lambda T, x: T.vstack([x[0], x]),
    "dstack": lambda T, x: T.dstack([x, x]),
    "meshgrid": lambda T, x: T.meshgrid(x[0], x[1], indexing="xy"),
    "block_diag": lambda T, x: T.block_diag(x, x[0]),
    "cartesian_prod": lambda T, x: T.cartesian_prod(x[0], x[1]),
    "broadcast_tensors": lambda T, x: T.broadcast_tensors(x, x[:, :1]),
    "atleast_3d": lambda T, x: T.atleast_3d(x[0]),
    "to_double": lambda T, x: x.to(T.float64),
    "view_dtype": lambda T, x: x.view(T.int32),
}


@pytest.mark.parametrize("name", VIEWS)
def test_view(name):
    both(VIEWS[name], matrix(), grad=2)


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize("name", ["T", "mT", "H", "adjoint"])
def test_transpositions_of_a_number(name):
    both(lambda T, x: getattr(x, name) if name != "adjoint" else x.adjoint(), torch.tensor(2.0))


COMPLEX = {
    "real": lambda T, z: z.real,
    "imag": lambda T, z: z.imag,
    "view_as_real": lambda T, z: T.view_as_real(z),
    "round_trip": lambda T, z: T.view_as_complex(T.view_as_real(z) * 2),
    "of_transposed": lambda T, z: z.t().imag,
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_views(name):
    both(COMPLEX[name], torch.randn(2, 3, dtype=torch.complex64, requires_grad=True), grad=2)


@settings(max_examples=60, deadline=None)
@given(tensors(requires_grad=True), st.data())
def test_reshape_of_any_layout(x, data):
    """View or copy, the same node, the same strides, whatever the layout was."""
    sizes = [n for n in x.shape for n in ((n // 2, 2) if n % 2 == 0 and n else (n,))]
    both(lambda T, x: x.reshape(sizes), x)
    both(lambda T, x: x.flatten(), x)
    if x.dim():
        dim = data.draw(st.integers(-x.dim(), x.dim() - 1))
        both(lambda T, x: x.unsqueeze(dim), x)
        both(lambda T, x: x.squeeze(dim), x)
        both(lambda T, x: x.select(dim, 0) if x.shape[dim] else x.narrow(dim, 0, 0), x)


@settings(max_examples=60, deadline=None)
@given(tensors())
def test_copies_are_laid_out_as_the_reference_lays_them_out(x):
    both(lambda T, x: [x.clone(), T.zeros_like(x), x.flip(list(range(x.dim()))), x.contiguous()], x)


def test_views_share_storage_and_version():
    x = rt.zeros(3, 4)
    views = [x[0], x.t(), x.view(12), x.unfold(0, 2, 1), x.diagonal(), x.expand(2, 3, 4), *x.unbind(), *x.split(1)]
    x.add_(1)
    for v in views:
        assert v._version == x._version == 1
        assert v.untyped_storage() is x.untyped_storage() and v._base is x
        assert v._array.min() == 1


INPLACE = {
    "select": lambda T, y: y[0].mul_(2),
    "column": lambda T, y: y[:, 1].fill_(3),
    "zero": lambda T, y: y.t().zero_(),
    "copy": lambda T, y: y[1].copy_(y[0].detach()),
    "diagonal": lambda T, y: y.diagonal().add_(1),
    "squeeze_": lambda T, y: y.unsqueeze_(0).squeeze_(0),
    "transpose_": lambda T, y: y.transpose_(0, 1),
    "t_": lambda T, y: y.t_(),
}


@pytest.mark.parametrize("name", INPLACE)
def test_writing_to_a_view(name):
    def write(T, x):
        y = x * 1
        INPLACE[name](T, y)
        return y

    both(write, matrix())


@pytest.mark.parametrize("cut", ["unbind", "split", "chunk"])
def test_one_of_several_views_refuses_to_be_written(cut):
    arguments = () if cut == "unbind" else (2,)
    both(lambda T, x: getattr(x * 1, cut)(*arguments)[0].mul_(2), matrix())


ERRORS = {
    "view": lambda T, x: x.view(5),
    "view_two": lambda T, x: x.view(-1, -1),
    "view_minus_two": lambda T, x: x.view(-2, 3),
    "view_strides": lambda T, x: x.t().view(12),
    "view_empty": lambda T, x: T.zeros(0).view(-1, 0),
    "expand": lambda T, x: x.expand(3, 5),
    "expand_fewer": lambda T, x: x.expand(3),
    "permute": lambda T, x: x.permute(0),
    "permute_twice": lambda T, x: x.permute(0, 0),
    "dim": lambda T, x: x.unsqueeze(4),
    "t": lambda T, x: x.view(1, 3, 4).t(),
    "select": lambda T, x: x.select(0, 3),
    "narrow": lambda T, x: x.narrow(0, 2, 2),
    "narrow_start": lambda T, x: x.narrow(0, 4, 0),
    "split": lambda T, x: x.split(0),
    "split_sizes": lambda T, x: x.split((1, 1)),
    "chunk": lambda T, x: x.chunk(0),
    "unfold": lambda T, x: x.unfold(0, 5, 1),
    "diagonal": lambda T, x: x.diagonal(0, 1, 1),
    "as_strided": lambda T, x: x.as_strided((3, 3), (4, 4)),
    "cat": lambda T, x: T.cat([]),
    "cat_sizes": lambda T, x: T.cat([x, x[:, :2]]),
    "cat_dims": lambda T, x: T.cat([x, x[0]]),
    "stack": lambda T, x: T.stack([x, x[0]]),
    "roll": lambda T, x: x.roll((1, 2), 0),
    "flip": lambda T, x: x.flip(0, 0),
    "imag": lambda T, x: x.imag,
    "unflatten": lambda T, x: x.unflatten(1, (2, 3)),
    "flatten": lambda T, x: x.flatten(1, 0),
    "rot90": lambda T, x: x.rot90(1, (0, 0)),
    "view_dtype": lambda T, x: x[:, :3].view(T.float64),
    "resize_": lambda T, x: x.resize_(2),
    "item": lambda T, x: x.item(),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    both(ERRORS[name], matrix())


def test_broadcast_shapes():
    both(lambda T: T.broadcast_shapes((2, 1), 3, (1, 1, 3)))
    both(lambda T: T.broadcast_shapes((2,), (3,)))
