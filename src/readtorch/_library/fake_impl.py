"""What operators do to fake tensors and on the Meta device: functions that compute shapes, and what they may ask.

In PyTorch: `torch/_library/fake_impl.py`. Explained in the chapter "One operator call".
"""

import contextlib
import functools
import warnings

from readtorch import _C

from .utils import Kernel, RegistrationHandle


class FakeImplHolder:
    """The fake kernels of one operator. The newest counts; when its library goes, the one before it does."""

    def __init__(self, qualname):
        self.qualname = qualname
        self.kernels = []

    @property
    def kernel(self):
        return self.kernels[-1] if self.kernels else None

    @kernel.setter
    def kernel(self, value):
        raise RuntimeError("Unable to directly set kernel.")

    def register(self, func, source, lib, *, allow_override=True):
        """Makes `func` the fake kernel, and the Meta kernel. Returns a RegistrationHandle."""
        if not allow_override:
            self._check_that_there_is_none()
        kernel = Kernel(func, source)
        self.kernels.append(kernel)
        try:
            lib.impl(self.qualname, construct_meta_kernel(self.qualname, self), "Meta", allow_override=allow_override)
        except Exception:
            self.kernels.remove(kernel)
            raise
        return RegistrationHandle(lambda: self.kernels.remove(kernel))

    def _check_that_there_is_none(self):
        taken = f"register_fake(...): the operator {self.qualname} already has "
        if self.kernel is not None:
            raise RuntimeError(f"{taken}a fake impl registered at {self.kernel.source}.")
        if _C._dispatch_has_kernel_for_dispatch_key(self.qualname, "Meta"):
            raise RuntimeError(
                f"{taken}a DispatchKey::Meta implementation via a pre-existing torch.library or TORCH_LIBRARY registration. "
                "Please either remove that registration or don't call register_fake."
            )
        if _C._dispatch_has_kernel_for_dispatch_key(self.qualname, "CompositeImplicitAutograd"):
            raise RuntimeError(
                f"{taken}an implementation for this device type via a pre-existing registration to "
                "DispatchKey::CompositeImplicitAutograd.CompositeImplicitAutograd operators do not need a fake impl; instead, "
                "the operator will decompose into its constituents and those can have fake impls defined on them."
            )


def construct_meta_kernel(qualname, fake_impl_holder):
    """The kernel at Meta: the fake kernel, which may not ask for sizes that depend on data."""

    @functools.wraps(fake_impl_holder.kernel.func)
    def meta_kernel(*args, **kwargs):
        source = fake_impl_holder.kernel.source

        def error_on_ctx():
            raise RuntimeError(
                f"{qualname} ({source}): You're trying to run this operator with meta Tensors (as opposed to FakeTensors), but "
                "this operator may return an output Tensor with data-dependent shape. Meta Tensors don't support operators "
                "with outputs that have data-dependent shapes but FakeTensors do. If your operator does not return an output "
                "with data-dependent shape, make sure the FakeTensor and/or meta kernel does not call "
                "torch.library.get_ctx(). Otherwise, please use FakeTensors."
            )

        with set_ctx_getter(error_on_ctx):
            return fake_impl_holder.kernel(*args, **kwargs)

    return meta_kernel


def get_none():
    return None


global_ctx_getter = get_none  # what `torch.library.get_ctx` calls


@contextlib.contextmanager
def set_ctx_getter(ctx_getter):
    """`with set_ctx_getter(f):` inside, `torch.library.get_ctx()` is f()."""
    global global_ctx_getter
    previous, global_ctx_getter = global_ctx_getter, ctx_getter
    try:
        yield
    finally:
        global_ctx_getter = previous


class FakeImplCtx:
    """What `torch.library.get_ctx()` gives a fake kernel.

    In PyTorch `new_dynamic_size` makes a symbol for a size that depends on data. There are no such symbols here: it says so,
    as PyTorch does while they are switched off.
    """

    def __init__(self, _fake_mode, _op):
        self._fake_mode = _fake_mode
        self._op = _op

    def create_unbacked_symint(self, *, min=2, max=None):
        warnings.warn(
            "`create_unbacked_symint` is deprecated, please use `new_dynamic_size` instead", FutureWarning, stacklevel=2
        )
        return self.new_dynamic_size(min=min, max=max)

    def new_dynamic_size(self, *, min=0, max=None):
        import readtorch  # whose _subclasses is there: it made the fake mode

        raise readtorch._subclasses.DynamicOutputShapeException(self._op)
