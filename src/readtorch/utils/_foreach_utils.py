"""Which tensors one call of a `_foreach_…` operator may take together: those of one device and one dtype.

In PyTorch: `torch/utils/_foreach_utils.py`. The chapter "torch.optim" shows the optimizers that use it.
"""

from readtorch._tensor import Tensor
from readtorch.c10.scalar_type import bfloat16, float32, float64

_foreach_supported_types = [Tensor]


def _get_foreach_kernels_supported_devices():
    """The types of devices for which taking many tensors at once is the default."""
    # in PyTorch: also xpu, mtia and private backends
    return ["cuda"]


def _get_fused_kernels_supported_devices():
    """The types of devices that have fused steps."""
    # in PyTorch: also mps, xpu, hpu, mtia and private backends
    return ["cuda", "cpu"]


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """{(device, dtype): (lists, indices)}: the lists cut into groups by the tensors of the first list.

    A further list may be empty, and a tensor of it missing (None). indices: where the tensors of the group stood, if
    `with_indices`. RuntimeError for lists of different lengths, and for tensors of one place that do not belong together: beside
    a parameter of any dtype a count of steps may be float32 or float64 and lie on the host, and state may be bfloat16.
    """
    # in PyTorch: torch/csrc/Module.cpp and aten/src/ATen/native/ForeachUtils.h; the order of groups is that of a hash table
    first = tensorlistlist[0] if tensorlistlist else []
    if not first or any([tensors and len(tensors) != len(first) for tensors in tensorlistlist]):
        raise RuntimeError("Expected a first list that is not empty, and further ones that are as long or empty")
    keys = [(t.device, t.dtype) for t in first]
    for tensors in tensorlistlist[1:]:
        places = [None if t is None else (t.device, t.dtype) for t in tensors]
        if not all([_belongs(place, *key) for key, place in set(zip(keys, places))]):
            raise RuntimeError(
                "Tensors of the same index must be on the same device and the same dtype except `step` tensors that can be CPU "
                "and float32/64, and optimizer states that can be bfloat16 for mixed-precision training"
            )
    indices = {}
    for i, key in enumerate(keys):
        indices.setdefault(key, []).append(i)
    return {
        key: ([[tensors[i] for i in chosen] if tensors else [] for tensors in tensorlistlist], chosen * with_indices)
        for key, chosen in indices.items()
    }


def _belongs(place, device, dtype):
    """Whether a tensor of this place, (device, dtype), may stand beside a parameter of this device and dtype."""
    if place is None or place[0] == device:
        return place is None or place[1] in (dtype, float32, float64, bfloat16)
    return place[0].type == "cpu" and place[1] in (float32, float64)


def _device_has_foreach_support(device):
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors, device):
    """Whether `_foreach_…` operators take these tensors, which are on `device`; None counts as one of them."""
    return _device_has_foreach_support(device) and all(
        [t is None or type(t) in _foreach_supported_types for t in tensors]
    )
