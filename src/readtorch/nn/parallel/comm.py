"""Moving tensors between devices: broadcast, scatter, gather, and sums of what several devices have.

In PyTorch: `torch/nn/parallel/comm.py` and `torch/csrc/cuda/comm.cpp`. Explained in the chapter "DataParallel".
"""

import warnings

import readtorch
from readtorch.cuda._utils import _get_device_index

BUFFER_BYTES = 10485760


def _device(index):
    return readtorch.device("cpu") if index == -1 else readtorch.device("cuda", index)


def _x(size):
    return "x".join(map(str, size))


# ------------------------------------------------------------------------------------------ from one to many


def broadcast(tensor, devices=None, *, out=None):
    """A tuple of copies of `tensor`, one per device (`tensor` itself on its own); or copies written to `out`'s tensors.

    Raises RuntimeError unless exactly one of the two is given.
    """
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and out={out}"
        )
    if out is None:
        return tuple([tensor.to(_device(_get_device_index(d)), non_blocking=True) for d in devices])
    for target in out:
        if target.shape != tensor.shape:
            raise RuntimeError(
                f"Expected all output tensors to have same shape as the source tensor "
                f"{list(tensor.shape)}, but output tensor has shape {list(target.shape)}"
            )
        target.copy_(tensor, non_blocking=True)
    return tuple(out)


def broadcast_coalesced(tensors, devices, buffer_size=BUFFER_BYTES):
    """`tensors`, which are on devices[0], on each of `devices`: one list per device, the first one `tensors` themselves.

    Small tensors travel together: they are laid end to end in a buffer of about `buffer_size` bytes, so that there are
    few copies between devices instead of many.
    """
    devices = [_device(_get_device_index(d)) for d in devices]
    if any(t.device != devices[0] for t in tensors):
        raise RuntimeError("all tensors must be on devices[0]")
    copies = [[None] * len(tensors) for _ in devices[1:]]
    for indices in buckets(tensors, buffer_size):
        members = [tensors[i] for i in indices]
        buffer = flatten(members)
        for device, row in zip(devices[1:], copies):
            for i, part in zip(indices, unflatten(buffer.to(device, non_blocking=True), members)):
                row[i] = part.data  # a version counter of its own: a write to one is none to the others
    return [list(tensors), *copies]


def buckets(tensors, buffer_size):
    """Lists of positions: tensors of one dtype, in order, of at least `buffer_size` bytes together but for the last."""
    full, filling = [], {}
    for i, t in enumerate(tensors):
        indices, nbytes = filling.pop(t.dtype, ([], 0))
        indices.append(i)
        nbytes += t.nbytes
        if nbytes >= buffer_size:
            full.append(indices)
        else:
            filling[t.dtype] = indices, nbytes
    return full + [indices for indices, _ in filling.values()]


def flatten(tensors):
    """One vector with the elements of all of them."""
    return tensors[0].reshape(-1) if len(tensors) == 1 else readtorch.cat([t.reshape(-1) for t in tensors])


def unflatten(vector, like):
    """Views of `vector` with the shapes of the tensors `like`, one after the other."""
    return [part.view(t.shape) for part, t in zip(vector.split([t.numel() for t in like]), like)]


def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None):
    """A tuple with parts of `tensor` along `dim`, one on each of `devices`; or parts written to the tensors of `out`.

    chunk_sizes: the parts' sizes; by default equal, the last one smaller: there may be fewer parts than devices.
    streams: one per device, or None, on which the copy is made.
    """
    if out is not None:
        return _scatter_out(tensor, devices, chunk_sizes, dim, out)
    devices = [_device(_get_device_index(d)) for d in devices]
    if chunk_sizes is None:
        parts = tensor.chunk(len(devices), dim)
    else:
        if len(chunk_sizes) != len(devices):
            raise RuntimeError(
                f"Expected devices and chunk_sizes to be of same length, but got len(devices) = "
                f"{len(devices)} and len(chunk_sizes) = {len(chunk_sizes)}"
            )
        parts = tensor.split(list(chunk_sizes), dim)
    results = []
    for i, (part, device) in enumerate(zip(parts, devices)):
        with readtorch.cuda.stream(streams[i] if streams else None):
            results.append(part.to(device, non_blocking=True))
    return tuple(results)


def _scatter_out(tensor, devices, chunk_sizes, dim, out):
    for name, value in (("devices", devices), ("chunk_sizes", chunk_sizes)):
        if value is not None:
            raise RuntimeError(f"'{name}' must not be specified when 'out' is specified, but got {name}={value}")
    for target, part in zip(out, tensor.split([t.size(dim) for t in out], dim)):
        target.copy_(part, non_blocking=True)
    return tuple(out)


# ------------------------------------------------------------------------------------------ from many to one


def gather(tensors, dim=0, destination=None, *, out=None):
    """The tensors one after the other along `dim`, on `destination` (default: the current device), or written to `out`."""
    if out is not None:
        if destination is not None:
            raise RuntimeError(
                f"'destination' must not be specified when 'out' is specified, but got destination={destination}"
            )
        return out.copy_(gather(tensors, dim, out.device))
    if destination == -1:
        warnings.warn(
            "Using -1 to represent CPU tensor is deprecated. Please use a device object or string instead, "
            'e.g., "cpu".',
            FutureWarning,
            stacklevel=2,
        )
    device = _device(_get_device_index(destination, allow_cpu=True, optional=True))
    expected = list(tensors[0].shape)
    for t in tensors:
        expected[dim] = t.size(dim)
        if list(t.shape) != expected:
            raise RuntimeError(f"Gather got an input of invalid size: got {list(t.shape)}, but expected {expected}")
    return readtorch.cat([t.to(device, non_blocking=True) for t in tensors], dim)


def reduce_add(inputs, destination=None):
    """The sum of tensors of one size, each on a device of its own, on `destination`, where one of them must be."""
    destination = _get_device_index(destination, optional=True)
    root = None
    for i, t in enumerate(inputs):
        if t.device.type == "cpu":
            raise AssertionError(f"reduce_add expects all inputs to be on GPUs, but input {i} is on CPU")
        if t.get_device() == destination:
            root = i
        if t.shape != inputs[0].shape:
            raise ValueError(f"input {i} has invalid size: got {_x(t.shape)}, but expected {_x(inputs[0].shape)}")
    if root is None:
        raise RuntimeError("reduce_add expects destination to be on the same GPU with one of the tensors")
    if len(inputs) == 1:
        return inputs[0]
    first, *others = [t.to(_device(destination), non_blocking=True) for i, t in enumerate(inputs) if i != root]
    result = inputs[root] + first
    for other in others:
        result.add_(other)
    return result


def reduce_add_coalesced(inputs, destination=None, buffer_size=BUFFER_BYTES):
    """For lists of tensors, one list per device: the sums of the first of each, of the second …, on `destination`."""
    results = [None] * len(inputs[0])
    for indices in buckets(inputs[0], buffer_size):
        total = reduce_add([flatten([tensors[i] for i in indices]) for tensors in inputs], destination)
        for i, part in zip(indices, unflatten(total, [inputs[0][i] for i in indices])):
            results[i] = part.data
    return tuple(results)
