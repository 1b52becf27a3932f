"""What `torch._C` has for DLPack: tensors to capsules, capsules to tensors. See Note [ DLPack capsules ].

In PyTorch: `THPModule_toDLPack` and its neighbours in `torch/csrc/Module.cpp`, `tensor_fromDLPack` in
`torch/csrc/utils/tensor_new.cpp`, `maybeCopyTensor` in `aten/src/ATen/DLConvertor.cpp`.
"""

from readtorch.aten import dl_convertor
from readtorch.c10.cow import materialize
from readtorch.c10.cuda.cuda_stream import StreamImpl, current_stream, default_stream, stream_wait_stream
from readtorch.c10.cuda.device_memory import empty_on, tensor_over
from readtorch.c10.cuda.runtime import is_simulated
from readtorch.c10.device import cuda_device, current_device, has_accelerator
from readtorch.c10.device import device as Device
from readtorch.c10.tensor_impl import TensorImpl, storage_impl

from .tensor_numpy import check_array, type_name, wrap_foreign


def _to_dlpack(data, *, dl_device=None, copy=None):
    """A capsule of the first version, "dltensor", of the tensor's memory, or of a copy of it."""
    return to_capsule(data, dl_device, copy, False)


def _to_dlpack_versioned(data, *, dl_device=None, copy=None):
    """A capsule that tells its version, "dltensor_versioned"."""
    return to_capsule(data, dl_device, copy, True)


def to_capsule(data, dl_device, copy, versioned):
    if not isinstance(data, TensorImpl):
        raise TypeError(f"_to_dlpack(): argument 'data' (position 1) must be Tensor, not {type_name(data)}")
    if dl_device is not None and not isinstance(dl_device, (tuple, list)):
        raise TypeError(f"_to_dlpack(): argument 'dl_device' must be tuple of ints, not {type_name(dl_device)}")
    if copy is not None and not isinstance(copy, bool):
        raise TypeError(f"_to_dlpack(): argument 'copy' must be bool, not {type_name(copy)}")
    if dl_device is not None and len(dl_device) != 2:
        raise RuntimeError("dl_device must be either None or a tuple of ints")
    if data.device.type == "meta":
        raise BufferError("Cannot pack tensors on meta")
    t = maybe_copy_tensor(data.detach(), dl_device, copy)
    if t.device.type == "cuda" and is_simulated(t.device.index):
        raise BufferError(f"{t.device} is a simulated device: its addresses mean nothing to another library")
    materialize(storage_impl(t))
    return dl_convertor.to_dlpack(t.detach()._array, versioned, t.device)


def maybe_copy_tensor(data, dl_device, copy):
    """`data` on the device that is asked for; a copy if that is another, or if `copy` says so. ValueError if it may not be one."""
    if dl_device is not None:
        device = dl_convertor.dl_device_to_torch_device(*map(int, dl_device))
        if device != data.device:
            if copy is False:
                raise ValueError(
                    f"cannot move (i.e. copy=False) tensor from {data.device} to {device} without copying."
                )
            return data.to(device)
    return data.clone() if copy else data


def _from_dlpack(dlpack):
    """A tensor over a capsule's memory, which the capsule then no longer gives to others."""
    found = dl_convertor.from_dlpack(dlpack)
    if isinstance(found, tuple):
        has_accelerator()  # finds real ones
        address, numpy_dtype, shape, strides, owner = found
        if not address:
            return empty_on(cuda_device(current_device.index), shape, numpy_dtype, strides)
        return tensor_over(address, numpy_dtype, shape, strides, owner)
    return wrap_foreign(check_array(found))


def _torch_device_to_dl_device(device):
    if not isinstance(device, Device):
        raise RuntimeError("torchDeviceToDLDevice: expected torch.device argument.")
    return dl_convertor.torch_device_to_dl_device(device)


def let_stream_wait(stream):
    """What is put on the stream of that handle from now on waits for the current one. None and 1 mean the default stream."""
    index = current_device.index
    if stream == 2:
        raise BufferError("per-thread default stream is not supported.")
    if stream == 0:
        raise AssertionError(f"unsupported stream on CUDA: {stream}.")
    waiting = default_stream(index) if stream in (None, 1) else StreamImpl(index, stream, stream, 0)
    current = current_stream(index)
    if waiting.handle != current.handle:
        stream_wait_stream(waiting, current)


def capsule_of(ext_tensor, asked):
    """The capsule, and whether the producer knew of `copy`: an older one takes fewer arguments, and says so by a TypeError."""
    for newer in ("max_version", "copy", "dl_device"):
        try:
            return ext_tensor.__dlpack__(**asked), "copy" in asked
        except TypeError:
            asked.pop(newer, None)
    return ext_tensor.__dlpack__(**asked), "copy" in asked
