"""Where storages come from and go to: the location tags in a checkpoint, and `map_location`.

In PyTorch: the package registry of `torch/serialization.py`. Explained in the chapter "state_dict, save and
load".

A checkpoint says of each storage where it was: "cpu", "cuda:1". A tagger finds that out when saving; a
deserializer takes a storage that was read to the CPU to where its tag says. Each device brings a pair of
them, asked in the order of its priority.
"""

import functools
import re
import sys

from readtorch import storage as storages
from readtorch.c10.device import device as Device
from readtorch.c10.device import is_faked
from readtorch.storage import UntypedStorage

_package_registry = []  # (priority, tagger, deserializer), lowest priority first


def register_package(priority, tagger, deserializer):
    """Add a device. tagger(storage) gives its tag or None; deserializer(storage, tag) the storage on its
    device or None.
    """
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort()


def location_tag(storage):
    """The tag of a storage: "cpu", "cuda:0". Raises RuntimeError if no device claims it."""
    for _, tagger, _ in _package_registry:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {_type_name(storage)}")


def default_restore_location(storage, location):
    """The storage on the device that `location` names. Raises RuntimeError if no device knows the tag."""
    for _, _, deserializer in _package_registry:
        result = deserializer(storage, location)
        if result is not None:
            return result
    raise RuntimeError(f"don't know how to restore data location of {_type_name(storage)} (tagged with {location})")


def normalize_storage_type(storage_type):
    """The class of storages of that name in this library."""
    return storages.legacy_classes.get(storage_type.__name__) or getattr(storages, storage_type.__name__)


def storage_to_tensor_type(storage):
    """The class of tensors beside a class of storages: FloatTensor for FloatStorage. No object is of such a class today, so
    it raises AttributeError for whatever there is.
    """
    module = sys.modules[type(storage).__module__]
    return getattr(module, type(storage).__name__.replace("Storage", "Tensor"))


def _type_name(storage):
    module = type(storage).__module__
    return f"{'torch.storage' if isinstance(storage, UntypedStorage) else module}.{type(storage).__name__}"


def get_restore_location(map_location):
    """`map_location` as a function of (storage, tag) that puts the storage where it shall be."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, tag: default_restore_location(storage, map_location.get(tag, tag))
    if isinstance(map_location, (str, bytes, Device)):
        location = str(map_location) if isinstance(map_location, Device) else map_location
        return lambda storage, tag: default_restore_location(storage, location)

    def restore(storage, tag):
        result = map_location(storage, tag)
        return default_restore_location(storage, tag) if result is None else result

    return restore


def is_meta_location(map_location):
    """Whether all storages go to the Meta device, so that none needs to be read. Of a dictionary or function nobody knows."""
    if isinstance(map_location, Device):
        return map_location.type == "meta"
    return isinstance(map_location, str) and map_location == "meta"


def fake_place(map_location):
    """Under a FakeTensorMode a function: of which device a tensor says it were that was saved at a place. Else None.

    Nothing is read then, and no device needs to be there.
    """
    if not is_faked():
        return None
    if map_location is None or isinstance(map_location, dict):
        return lambda tag: (map_location or {}).get(tag, tag)
    if callable(map_location):
        raise RuntimeError(
            "Callable map_location not supported with _rebuild_wrapper_subclass or _rebuild_device_tensor_from_numpy"
        )
    return lambda tag: map_location


# ------------------------------------------------------------------------------------------------ the devices


def _cpu_tag(storage):
    return "cpu" if storage.device.type == "cpu" else None


def _cpu_deserialize(storage, location):
    return storage if location == "cpu" else None


def _meta_tag(storage):
    return "meta" if storage.device.type == "meta" else None


def _meta_deserialize(storage, location):
    return UntypedStorage(storage.nbytes(), device="meta") if location == "meta" else None


def _mps_tag(storage):
    return "mps" if storage.device.type == "mps" else None


def _mps_deserialize(storage, location):
    if location.startswith("mps"):
        raise RuntimeError("torch.UntypedStorage(): Storage device not recognized: mps")  # as PyTorch off a Mac


def _backend_tag(backend, storage):
    if storage.device.type != _name_of(backend):
        return None
    index = storage.device.index
    return storage.device.type if index is None else f"{storage.device.type}:{index}"


def _name_of(backend):
    """What a device of which PyTorch knows nothing is called until it says its own name."""
    return "privateuseone" if backend == "privateuse1" else backend


def _deserialize(backend, storage, location):
    backend = _name_of(backend)
    if location == backend or re.match(f"{backend}(:|[0-9]+)", location):
        device = _validate_device(location, backend)
        return storage.to(device=device)
    return None


_MODULES_OF_PYTORCH = ("cuda", "xpu", "mtia")  # other devices bring theirs along


def _validate_device(location, backend):
    """The device that a tag names. Raises RuntimeError if this machine has it not."""
    advice = (
        "If you are running on a CPU-only machine, please use torch.load with "
        "map_location=torch.device('cpu') "
        "to map your storages to the CPU."
    )
    from readtorch import cuda

    module = cuda if backend == "cuda" else None
    if backend not in _MODULES_OF_PYTORCH:
        raise RuntimeError(f"The {backend.upper()} device module is not registered. {advice}")
    if module is None or not module.is_available():
        raise RuntimeError(
            f"Attempting to deserialize object on a {backend.upper()} device but "
            f"torch.{backend}.is_available() "
            f"is False. {advice}"
        )
    device = Device(location)
    device = Device(backend, device.index or 0)
    if device.index >= module.device_count():
        raise RuntimeError(
            f"Attempting to deserialize object on {backend.upper()} device {device.index} but "
            f"torch.{backend}.device_count() is {module.device_count()}. Please use "
            "torch.load with "
            "map_location to map your storages to an existing device."
        )
    return device


def validate_cuda_device(location):
    """The index of the GPU that a tag names. Raises RuntimeError if this machine has it not."""
    return _validate_device(location, "cuda").index


def validate_hpu_device(location):
    """The same for an HPU, of which there is no module here."""
    return _validate_device(location, "hpu").index


register_package(10, _cpu_tag, _cpu_deserialize)
register_package(20, functools.partial(_backend_tag, "cuda"), functools.partial(_deserialize, "cuda"))
register_package(21, _mps_tag, _mps_deserialize)
register_package(22, _meta_tag, _meta_deserialize)
for _priority, _backend in (
    (23, "privateuse1"),
    (24, "hpu"),
    (25, "xpu"),
    (26, "mtia"),
):  # not built here: the clear error is
    register_package(_priority, functools.partial(_backend_tag, _backend), functools.partial(_deserialize, _backend))
