"""What operators do while `use_deterministic_algorithms` is on.

Note [ Deterministic algorithms ]
PyTorch calls an operator nondeterministic if the order in which its threads write, or which of several equal elements it
takes, may differ from one run to the next. While the setting is on, such an operator raises an error before it computes
anything, or warns. PyTorch's kernels ask the setting themselves, in every call. Here an operator declares what takes the
place of its kernels while the setting is on: `Operator.resolve` hands that out, and a change of the setting empties the
dispatch tables of the operators that declared something. With the setting off nothing is asked, and nothing is in the way.

The kernels of the CPU, of simulated devices and of the simulator give the same bits every time; an operator raises because
the same program would with PyTorch. On a real device sums by atomic additions may differ in their last digits. For some of
them (`index_put`, `scatter_add`, gradients of `embedding`, `replication_pad2d`, `upsample_bilinear2d`) PyTorch takes another
kernel while the setting is on, and does not raise; here the kernel stays the same one, and on a real device it is not deterministic.

In PyTorch: `Context::alertNotDeterministic` in `aten/src/ATen/Context.cpp`, which kernels call, and `fill_empty_deterministic_`
in `aten/src/ATen/native/TensorFactories.h`. PyTorch has no such file.
"""

import functools
import warnings

from readtorch.c10.dispatch_key import CPU, CUDA, SIMULATED_CUDA
from readtorch.c10.scalar_type import bool as bool_
from readtorch.c10.tensor_impl import detached, dtype_of, storage_impl
from readtorch.c10.type_info import iinfo

from .context import context
from .dispatcher import registry

GPU = CUDA | SIMULATED_CUDA
ANYWHERE = CPU | GPU


def alert_not_deterministic(caller):
    """Raises RuntimeError, or warns where that was asked for. To be called while the setting is on."""
    text = (
        f"{caller} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True"
    )
    wish = "file an issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding deterministic support for this operation."
    if not context.deterministic_warn_only:
        raise RuntimeError(
            f"{text})'. You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, "
            f"if that's acceptable for your application. You can also {wish}"
        )
    warnings.warn(f"{text}, warn_only=True)'. You can {wish}", stacklevel=4)


def not_deterministic(operator, caller, backends=GPU, when=None):
    """Declare that `operator` alerts on these backends. when: a function of its arguments that says in which calls."""

    def alerting(kernel):
        @functools.wraps(kernel)
        def alert_then_compute(*arguments):
            if when is None or when(*arguments):
                alert_not_deterministic(caller)
            return kernel(*arguments)

        return alert_then_compute

    operator.while_deterministic(alerting, backends)


def fills_its_memory(*operators):
    """Declare that what these operators allocate without writing to it is filled."""

    def filling(kernel):
        @functools.wraps(kernel)
        def make_then_fill(*arguments):
            made = kernel(*arguments)
            if context.fill_uninitialized_memory:
                fill_uninitialized(detached(made))
            return made

        return make_then_fill

    for operator in operators:
        operator.while_deterministic(filling, ANYWHERE)


def fills_what_is_added(*operators):
    """Declare that these operators, which may enlarge the storage of their first argument, fill what they have added."""

    def filling(kernel):
        @functools.wraps(kernel)
        def resize_then_fill(self, *arguments):
            old = storage_impl(self).nbytes
            kernel(self, *arguments)
            if context.fill_uninitialized_memory:
                fill_elements_from(self, old // self._array.itemsize)
            return self

        return resize_then_fill

    for operator in operators:
        operator.while_deterministic(filling, ANYWHERE)


def fill_elements_from(t, first):
    """Fill the elements of the storage of `t` from number `first` on, whether `t` shows them or not."""
    storage = storage_impl(t)
    count = storage.nbytes // t._array.itemsize - first
    if count > 0:
        added = detached(t)
        added._array = storage.as_strided(t._array.dtype, (count,), (1,), first)
        fill_uninitialized(added)


def fill_uninitialized(t):
    """NaN for floating point and complex numbers, else the largest number of the dtype."""
    dtype = dtype_of(t)
    if dtype.is_floating_point or dtype.is_complex:
        value = float("nan")
    else:
        value = True if dtype is bool_ else iinfo(dtype).max
    registry["aten::fill_.Scalar"].call(t, value)
