"""What NVIDIA's management library says of a device, through the package nvidia-ml-py.

In PyTorch: `torch/cuda/__init__.py`.
"""

from ._utils import _get_device_index


def _nvml(device):
    """(the library, its handle of a device). Raises ModuleNotFoundError without the package, RuntimeError without a driver."""
    try:
        import pynvml
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("nvidia-ml-py does not seem to be installed or it can't be imported.") from error
    try:
        pynvml.nvmlInit()
    except (pynvml.NVMLError_DriverNotLoaded, pynvml.NVMLError_LibraryNotFound) as error:
        raise RuntimeError("cuda driver can't be loaded, is cuda enabled?") from error
    return pynvml, pynvml.nvmlDeviceGetHandleByIndex(_get_device_index(device, optional=True))


def device_memory_used(device=None):
    """Bytes of memory in use, by all programs."""
    nvml, handle = _nvml(device)
    return nvml.nvmlDeviceGetMemoryInfo(handle).used


def memory_usage(device=None):
    """The percentage of the last period in which memory was read or written."""
    nvml, handle = _nvml(device)
    return nvml.nvmlDeviceGetUtilizationRates(handle).memory


def utilization(device=None):
    """The percentage of the last period in which a kernel ran."""
    nvml, handle = _nvml(device)
    return nvml.nvmlDeviceGetUtilizationRates(handle).gpu


def temperature(device=None):
    """Degrees Celsius."""
    nvml, handle = _nvml(device)
    return nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)


def power_draw(device=None):
    """Milliwatts."""
    nvml, handle = _nvml(device)
    return nvml.nvmlDeviceGetPowerUsage(handle)


def clock_rate(device=None):
    """The clock of the multiprocessors, in MHz."""
    nvml, handle = _nvml(device)
    return nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)
