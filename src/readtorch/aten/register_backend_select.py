"""The kernels of the key BackendSelect: for operators that make a tensor from options, they choose the backend by `device`.

Note [ Who looks at the device ]
An operator without tensors has no backend among its keys. PyTorch's threads include BackendSelect in every call, whose kernel computes
the key from dtype, layout and device and calls on with it. Here an operator's entry has looked at `device` before the table is asked:
a second look-up would cost a factory a tenth of its time. So a set that comes from an entry passes this key by, and the kernel serves
those who call on by hand, with a set that has no backend.

In PyTorch: `RegisterBackendSelect.cpp`, written by `torchgen/gen.py` (`ComputeBackendSelect`), and
`aten/src/ATen/core/BackendSelectFallbackKernel.cpp`. Explained in the chapter "One operator call".
"""

from readtorch.c10.device import keys_on
from readtorch.c10.dispatch_key import BACKEND_SELECT, BACKENDS

from . import dispatcher
from .operator_entry import keys_of


def needs_backend_select(operator):
    """Whether the operator takes options of a new tensor; `…_like` and `new_…` follow the tensor that they are given."""
    name, arguments = operator.schema.name, {a.name for a in operator.schema.arguments}
    if name.endswith("_like") or name.startswith("new_") or operator.schema.is_out:
        return False
    return {"dtype", "layout", "device", "pin_memory"} <= arguments


def make_backend_select_kernel(operator, keys):
    """The BackendSelect kernel of `operator`."""
    place = [a.name for a in operator.schema.arguments].index("device")

    def backend_select(*arguments):
        below = keys & BACKENDS
        carried = keys_of(arguments) & BACKENDS
        device = arguments[place]
        found = carried if carried and device is None else keys_on(device, below)
        return operator.table[keys & ~BACKEND_SELECT | found](*arguments)

    return backend_select


make_backend_select_kernel.serves = needs_backend_select
dispatcher.writers[BACKEND_SELECT] = make_backend_select_kernel
