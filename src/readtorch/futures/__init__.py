"""Values that will be there later. In PyTorch: `torch/futures/__init__.py`."""

from typing import Generic, TypeVar

from readtorch.csrc.distributed.future import Future as _Future

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(_Future, Generic[T]):
    """A value, or an exception, that somebody sets once; who needs it waits or leaves a callback.

    `Future[int]` is one whose value is an int, for checkers of types and for TorchScript.
    """


def collect_all(futures):
    """A Future of the list of `futures`, done when all of them are; an exception stays in its own future."""
    together, left = Future(), len(futures)
    if not futures:
        together.set_result(futures)

    def one_is_done(_):
        nonlocal left
        left -= 1
        if left == 0:
            together.set_result(futures)

    for future in futures:
        future.add_done_callback(one_is_done)
    return together


def wait_all(futures):
    """The values of all `futures`, in order; raises the first exception among them."""
    return [future.wait() for future in collect_all(list(futures)).wait()]
