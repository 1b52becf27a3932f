"""Tensors handed to other libraries and taken from them, by the DLPack protocol. In PyTorch: `torch/utils/dlpack.py`.

Explained in the chapter "Tensor and Storage".
"""

import enum

from readtorch import _C
from readtorch._C import _to_dlpack as to_dlpack  # noqa: F401  (public)
from readtorch.c10.cuda.cuda_stream import current_stream
from readtorch.c10.device import device as Device
from readtorch.csrc.utils.tensor_dlpack import capsule_of

__all__ = ["DLDeviceType", "from_dlpack"]


class DLDeviceType(enum.IntEnum):
    """The kinds of devices that DLPack numbers."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor over the memory of another library's tensor: what one writes the other reads.

    ext_tensor: what has `__dlpack__` (a NumPy array, a tensor of PyTorch or JAX …), or a capsule that such a method gave.
    device: where the result shall be, which is a copy if that is another device. copy: True for a copy in any case, False for
    an error if one would be needed.

    Raises BufferError for what cannot be shared (a tensor that requires grad, a dtype that we have not), RuntimeError for a
    capsule that was used before, ValueError for `copy=False` where a copy is needed. In PyTorch: `torch/utils/dlpack.py`.
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        if device is not None or copy is not None:
            raise AssertionError("device and copy kwargs not supported when ext_tensor is already a DLPack capsule.")
        return _C._from_dlpack(ext_tensor)
    asked = {"max_version": (1, 0)}
    if copy is not None:
        asked["copy"] = copy
    source, moves = ext_tensor.__dlpack_device__(), False
    if device is not None:
        device = Device(device) if isinstance(device, str) else device
        if not isinstance(device, Device):
            raise AssertionError(f"from_dlpack: unsupported device type: {type(device)}")
        target = _C._torchDeviceToDLDevice(device)
        moves = source != target
        if moves and copy is False:
            raise ValueError(
                f"cannot move DLPack tensor from device {source} to {target} without copying. Set copy=None or copy=True."
            )
        if not moves:
            asked["dl_device"] = target
    if source[0] == DLDeviceType.kDLCUDA:  # the producer lets our stream wait; the default one has the number 1 there
        asked["stream"] = current_stream(source[1]).handle or 1
    capsule, copied = capsule_of(ext_tensor, asked)
    result = _C._from_dlpack(capsule)
    if moves:
        return result.to(device)
    return result.clone() if copy is True and not copied else result
