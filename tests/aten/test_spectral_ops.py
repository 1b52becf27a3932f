"""Fourier transforms next to the reference: sizes, norms and layouts at random, refusals."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs import same
from tests.reference import both
from tests.strategies import tensors

FROM_REAL = ("rfft", "ihfft")


def transform(name, **arguments):
    return lambda T, x: getattr(T.fft, name)(x, **arguments)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_one_dimension(name, data):
    kinds = [torch.float64] if name in FROM_REAL else [torch.float64, torch.complex128]
    x = data.draw(tensors((2, 3, 4), st.sampled_from(kinds), ("contiguous", "permuted", "sliced"), requires_grad=True))
    n, dim, norm = (
        data.draw(st.sampled_from(v)) for v in ([None, 1, 2, 5, 8], [0, 1, -1], [None, "forward", "backward", "ortho"])
    )
    n = 2 if n in (None, 1) and name in ("irfft", "hfft") else n
    both(transform(name, n=n, dim=dim, norm=norm), x, grad=2)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_several_dimensions(name, norm):
    x = torch.randn(3, 4, 6, dtype=torch.float64, requires_grad=True)
    for suffix, arguments in (
        ("2", {}),
        ("2", dict(s=(3, 8))),
        ("n", {}),
        ("n", dict(s=(5, -1))),
        ("n", dict(dim=(0, 2))),
        ("n", dict(s=(2, 3, 4))),
    ):
        both(transform(name + suffix, norm=norm, **arguments), x, grad=2)


def test_types_frequencies_and_shifts():
    for x in (torch.arange(6), torch.ones(4, dtype=torch.bool), torch.randn(5), torch.tensor(2.0)):
        both(transform("fftn"), x)
        both(transform("fftshift"), x)
        both(transform("ifftshift"), x)
    both(lambda T: [T.fft.fftfreq(n, d) for n in range(1, 6) for d in (1.0, 0.3)])
    both(lambda T: [T.fft.rfftfreq(n, dtype=T.float64) for n in range(1, 6)])


def test_refusals():
    def program(T, show):
        F, x, c = T.fft, T.randn(3, 4), T.randn(3, 4).to(T.complex64)
        for wrong in (
            lambda: F.fft(x, n=0),
            lambda: F.fft(x, norm="none"),
            lambda: F.fft(x, dim=5),
            lambda: F.rfft(c),
            lambda: F.ihfft(c),
            lambda: F.rfftn(c),
            lambda: F.fft(x.half()),
            lambda: F.fft(T.tensor(1.0)),
            lambda: F.irfft(c[:, :1]),
            lambda: F.fftn(x, dim=(0, 0)),
            lambda: F.fftn(x, s=(2, 2, 2)),
            lambda: F.fftn(x, s=(2,), dim=(0, 1)),
            lambda: F.rfftn(T.tensor(1.0)),
            lambda: F.irfftn(c, dim=()),
            lambda: F.fft2(x[0]),
            lambda: F.fft(x, out=T.empty(0)),
            lambda: F.irfft2(c, out=T.empty(0).long()),
        ):
            show.error(wrong)

    same(program)
