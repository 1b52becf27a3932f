"""Written in the chapter "Normalization": its cells are this file, put together by `tools/mini.py`."""

import numpy as np

from .autograd import Tensor, derivative, operator
from .hooks import Module
from .parameter import Parameter

EPS = 1e-5


def rstd_of(x):
    """1 / deviation of each column."""
    return 1 / np.sqrt(x.var(0) + x.dtype.type(EPS))


normalize = operator(
    "normalize", lambda x: (x - x.mean(0)) * rstd_of(x))


class BatchNorm1d(Module):
    """Normalizes columns; remembers for evaluation."""

    ddof = 1  # the variance remembered is divided by n - 1

    def __init__(self, features, momentum=0.1):
        super().__init__()
        zeros = np.zeros(features, np.float32)
        self.momentum = momentum
        self.weight = Parameter(Tensor.of(zeros + 1))
        self.bias = Parameter(Tensor.of(zeros))
        self.register_buffer("running_mean", Tensor.of(zeros))
        self.register_buffer("running_var", Tensor.of(zeros + 1))
        self.register_buffer("num_batches_tracked", Tensor.of(0))

    def forward(self, x):
        if self.training:
            self.remember(x.read())
            xhat = normalize(x)
        else:
            variance = self.running_var.read() + EPS
            xhat = ((x + self.running_mean * -1)
                    * Tensor.of(1 / np.sqrt(variance)))
        return xhat * self.weight + self.bias

    def remember(self, x):
        self.num_batches_tracked += 1
        factor = self.momentum
        if factor is None:
            factor = 1 / self.num_batches_tracked.read()
        for running, new in [
                (self.running_mean, x.mean(0)),
                (self.running_var, x.var(0, ddof=self.ddof))]:
            running.write((1 - factor) * running.read()
                          + factor * new)


def normalize_backward(grad, a, result):
    g, xhat = grad.read(), result.read()
    g = g - g.mean(0) - xhat * (g * xhat).mean(0)
    return Tensor.of(g * rstd_of(a.read()))


derivative(normalize, a=normalize_backward)
