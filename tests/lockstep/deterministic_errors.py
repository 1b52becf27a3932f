"""Deterministic algorithms: which calls are refused on request, which only warn, and what fresh memory holds meanwhile."""

import contextlib
import warnings

import torch
from torch import nn


def attempt(what, function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function()
            said = result if isinstance(result, (str, bool, int, list, tuple)) else "done"
        except RuntimeError as error:
            said = f"RuntimeError: {str(error).split('.')[0]}"
    print(f"{what:<26}", said, *[f"warns: {str(w.message).split('.')[0]}" for w in caught])


@contextlib.contextmanager
def deterministic(on=True, warn_only=False):
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(on, warn_only=warn_only)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def state():
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.get_deterministic_debug_mode(),
    )


x = torch.arange(6.0).reshape(2, 3)
index = torch.tensor([[0, 1, 1], [1, 0, 0]])
rows = torch.tensor([0, 0, 1])
CALLS = {
    "put_": lambda: torch.zeros(4).put_(rows, torch.ones(3)).tolist(),
    "put_, accumulating": lambda: torch.zeros(4).put_(rows, torch.ones(3), accumulate=True).tolist(),
    "index_put_, accumulating": lambda: torch.zeros(2).index_put_((rows,), torch.ones(3), accumulate=True).tolist(),
    "x[i] = ": lambda: torch.zeros(4).__setitem__(rows, 1.0) is None,
    "index_add": lambda: torch.zeros(2, 3).index_add(0, rows, torch.ones(3, 3)).tolist(),
    "index_copy": lambda: torch.zeros(2, 3).index_copy(0, torch.tensor([1]), torch.ones(1, 3)).tolist(),
    "scatter_add": lambda: torch.zeros(2, 3).scatter_add(1, index, x).tolist(),
    "scatter": lambda: torch.zeros(2, 3).scatter(1, torch.tensor([[0], [1]]), 1.0).tolist(),
    "scatter_reduce": lambda: torch.zeros(2, 3).scatter_reduce(1, index, x, "sum").tolist(),
    "gather": lambda: x.gather(1, index).tolist(),
    "cumsum": lambda: x.cumsum(1).tolist(),
    "median with indices": lambda: x.median(1).indices.tolist(),
    "kthvalue": lambda: x.kthvalue(2).indices.tolist(),
    "bincount": lambda: torch.bincount(rows).tolist(),
    "histc": lambda: torch.histc(x, 3).tolist(),
    "masked_fill": lambda: x.masked_fill(x > 2, 0.0).tolist(),
    "resize_": lambda: tuple(x.clone().resize_(3, 3).shape),
    "max_pool2d": lambda: tuple(nn.functional.max_pool2d(torch.ones(1, 1, 4, 4), 2).shape),
    "fractional_max_pool2d": lambda: tuple(
        nn.functional.fractional_max_pool2d(torch.ones(1, 1, 4, 4), 2, output_size=2).shape
    ),
    "MaxUnpool1d": lambda: nn.MaxUnpool1d(2)(torch.ones(1, 1, 2), torch.tensor([[[0, 3]]])).tolist(),
    "backward of interpolate": lambda: (
        nn.functional.interpolate(torch.ones(1, 1, 3, 3, requires_grad=True), scale_factor=2, mode="bicubic")
        .sum()
        .backward()
    ),
    "backward of indexing": lambda: torch.ones(3, requires_grad=True)[rows].sum().backward(),
    "ctc_loss": lambda: nn.functional.ctc_loss(
        torch.zeros(4, 1, 3, requires_grad=True).log_softmax(2), torch.tensor([[1, 2]]), (4,), (2,)
    ).backward(),
}
print("as usual", state())
for on, warn_only in ((True, False), (True, True)):
    with deterministic(on, warn_only):
        print("asked for", state())
        for what, call in CALLS.items():
            attempt(what, call)
print("as usual", state())
for mode in ("warn", "error", 1, 0, "default"):
    torch.set_deterministic_debug_mode(mode)
    print(mode, state())
for wrong in (
    lambda: torch.set_deterministic_debug_mode("loud"),
    lambda: torch.set_deterministic_debug_mode(7),
    lambda: torch.use_deterministic_algorithms(),
):
    try:
        wrong()
    except (RuntimeError, TypeError) as error:
        print(type(error).__name__, error)
print("fresh memory", torch.utils.deterministic.fill_uninitialized_memory)
with deterministic():
    print(
        torch.empty(2).tolist(), torch.empty(2, dtype=torch.int64).tolist(), torch.empty(1, dtype=torch.bool).tolist()
    )
    print(
        torch.empty_like(x).isnan().all().item(),
        torch.ones(1).resize_(3).tolist(),
        torch.empty(2, dtype=torch.complex64).tolist(),
    )
    print(
        torch.empty_strided((2,), (2,)).tolist(), x.new_empty(1).tolist(), torch.empty(1, dtype=torch.float16).tolist()
    )
    torch.utils.deterministic.fill_uninitialized_memory = False
    print(torch.empty(1000).isnan().all().item(), torch.utils.deterministic.fill_uninitialized_memory)
    torch.utils.deterministic.fill_uninitialized_memory = True
