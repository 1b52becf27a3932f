"""The driver of real NVIDIA GPUs: each call is one of the CUDA driver, through NVIDIA's Python bindings.

Written without a GPU at hand: tests run it against a stand-in for the bindings, whose functions take and
return what the real ones do, and check that the real ones have these functions. Which stream or event belongs
to which device the CUDA driver knows by itself; whatever belongs to the current *context* is called inside
the device's primary one. Numba works in that context, too, so its kernels can use this memory.

In PyTorch: `c10/cuda/CUDAFunctions.cpp` and `c10/cuda/driver_api.cpp`; the CUDA runtime (`cudaMalloc` …) does there
what is done here by calls of the driver, contexts included.
"""

import re

import numpy as np

from . import numba_launch
from .cuda_exception import AcceleratorError, MemoryAllocationError, check_message, launches_block
from .driver_api import DeviceProperties, Driver, MemoryAt

_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: the stream does not wait for the default one
_PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE: page-locked for every context
_DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING: such events are cheaper
_AUTO_FREE_ON_LAUNCH, _USE_NODE_PRIORITY = 1, 8  # CUDA_GRAPH_INSTANTIATE_FLAG_…
_VERBOSE = 1  # CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE
_ATTRIBUTES = {  # DeviceProperties' name -> CUDA's, without CU_DEVICE_ATTRIBUTE_
    "major": "COMPUTE_CAPABILITY_MAJOR",
    "minor": "COMPUTE_CAPABILITY_MINOR",
    "multi_processor_count": "MULTIPROCESSOR_COUNT",
    "warp_size": "WARP_SIZE",
    "max_threads_per_block": "MAX_THREADS_PER_BLOCK",
    "max_threads_per_multi_processor": "MAX_THREADS_PER_MULTIPROCESSOR",
    "regs_per_multiprocessor": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "shared_memory_per_block": "MAX_SHARED_MEMORY_PER_BLOCK",
    "shared_memory_per_multiprocessor": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "l2_cache_size": "L2_CACHE_SIZE",
    "is_integrated": "INTEGRATED",
}


class _ContextGuard:
    """`with guard:` that context is this thread's current one inside. Every launch does it."""

    __slots__ = ("push", "pop", "check", "context")

    def __init__(self, driver, context):
        self.push, self.pop = driver.cuda.cuCtxPushCurrent, driver.cuda.cuCtxPopCurrent
        self.check, self.context = driver._check, context

    def __enter__(self):
        self.check(self.push(self.context)[0])

    def __exit__(self, *exception):
        self.check(self.pop()[0])


# What numba and NVIDIA's packages raise where a library of the compiler is missing, and what a driver says to code that is
# newer than itself.
_MISSING = {"DynamicLibNotFoundError", "NvvmSupportError", "NvrtcSupportError"}
_TOO_OLD = {"CUDA_ERROR_INVALID_IMAGE", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "CUDA_ERROR_NO_BINARY_FOR_GPU"}
_INSTALL = (
    "`pip install readtorch[cu13]` brings a compiler for drivers of version 580 and newer, `pip install readtorch[cu12]` one for "
    "older ones; nvidia-smi shows the version."
)


class RealDriver(Driver):
    """`bindings`: the module `cuda.bindings.driver` (the default), which numba-cuda brings along."""

    def __init__(self, bindings=None):
        if bindings is None:
            from cuda.bindings import driver as bindings
        self.cuda = bindings
        self._call("cuInit", 0)
        self._launches_block = launches_block()
        self._devices = [self._call("cuDeviceGet", i) for i in range(self._call("cuDeviceGetCount"))]
        self._guards = {}  # device -> _ContextGuard
        self._properties = [self._read_properties(device) for device in self._devices]

    def _call(self, name, *arguments):
        """A function of the driver: its result, or an error."""
        status, *result = getattr(self.cuda, name)(*arguments)
        self._check(status)
        return result[0] if len(result) == 1 else result

    def _is_done(self, name, handle):
        """The answer of a query, for which "not ready" is no error."""
        (status,) = getattr(self.cuda, name)(handle)
        if status == self.cuda.CUresult.CUDA_ERROR_NOT_READY:
            return False
        self._check(status)
        return True

    def _check(self, status):
        if not status:  # CUDA_SUCCESS
            return
        if status == self.cuda.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise MemoryAllocationError
        raise self._error_of(status)

    def _on(self, device):
        """Inside, the device's primary context is this thread's current one."""
        guard = self._guards.get(device)
        if guard is None:
            context = self._call("cuDevicePrimaryCtxRetain", self._devices[device])
            guard = self._guards[device] = _ContextGuard(self, context)
        return guard

    # --------------------------------------------------------------------------------------------- devices

    def _read_properties(self, device):
        names = self.cuda.CUdevice_attribute
        numbers = {}
        for ours, theirs in _ATTRIBUTES.items():
            attribute = getattr(names, f"CU_DEVICE_ATTRIBUTE_{theirs}")
            numbers[ours] = self._call("cuDeviceGetAttribute", attribute, device)
        numbers["is_integrated"] = bool(numbers["is_integrated"])
        name = self._call("cuDeviceGetName", 256, device).split(b"\0")[0].decode()
        return DeviceProperties(name, self._call("cuDeviceTotalMem", device), **numbers)

    def device_count(self):
        return len(self._devices)

    def get_device_properties(self, device):
        return self._properties[device]

    def device_synchronize(self, device):
        with self._on(device):
            self._call("cuCtxSynchronize")

    def processes(self, device):
        """As NVIDIA's management library knows them; without its bindings (pynvml) nothing is known."""
        try:
            import pynvml
        except ImportError:
            return []
        try:
            pynvml.nvmlInit()
            handle = pynvml.nvmlDeviceGetHandleByIndex(device)
            running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        except pynvml.NVMLError:
            return []
        return [(process.pid, process.usedGpuMemory or 0) for process in running]

    # ---------------------------------------------------------------------------------------------- memory

    def mem_get_info(self, device):
        with self._on(device):
            return tuple(self._call("cuMemGetInfo"))

    def malloc(self, device, nbytes):
        with self._on(device):
            return int(self._call("cuMemAlloc", nbytes))

    def free(self, device, address):
        with self._on(device):
            self._call("cuMemFree", address)

    def window(self, address, nbytes):
        return np.asarray(MemoryAt(address, nbytes))

    def copy(self, device, stream, destination, source, nbytes):
        with self._on(device):
            self._call("cuMemcpyAsync", destination, source, nbytes, stream)

    def host_alloc(self, nbytes):
        with self._on_any():
            return int(self._call("cuMemHostAlloc", nbytes, _PORTABLE))

    def host_free(self, address):
        with self._on_any():
            self._call("cuMemFreeHost", address)

    def host_register(self, address, nbytes):
        with self._on_any():
            self._call("cuMemHostRegister", address, nbytes, _PORTABLE)

    def host_unregister(self, address):
        with self._on_any():
            self._call("cuMemHostUnregister", address)

    def is_host_pinned(self, address):
        """Also memory that another library has locked."""
        found = self._attribute_of("MEMORY_TYPE", address)
        return found is not None and found == int(self.cuda.CUmemorytype.CU_MEMORYTYPE_HOST)

    def device_of(self, address):
        return self._attribute_of("DEVICE_ORDINAL", address)

    def _attribute_of(self, name, address):
        """What the driver knows of an address; None for memory that it does not know."""
        attribute = getattr(self.cuda.CUpointer_attribute, f"CU_POINTER_ATTRIBUTE_{name}")
        with self._on_any():
            status, found = self.cuda.cuPointerGetAttribute(attribute, address)
        if status == self.cuda.CUresult.CUDA_ERROR_INVALID_VALUE:
            return None
        self._check(status)
        return int(found)

    def _on_any(self):
        """Any device's context will do: page-locked memory belongs to all. One that is there already costs nothing."""
        return self._on(next(iter(self._guards), 0))

    def mem_address_reserve(self, device, nbytes):
        return int(self._call("cuMemAddressReserve", nbytes, 0, 0, 0))

    def mem_address_free(self, address, nbytes):
        self._call("cuMemAddressFree", address, nbytes)

    def mem_create(self, device, nbytes):
        properties = self.cuda.CUmemAllocationProp()
        properties.type = self.cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        self._place(properties.location, device)
        return int(self._call("cuMemCreate", nbytes, properties, 0))

    def mem_release(self, handle):
        self._call("cuMemRelease", handle)

    def mem_map(self, device, address, nbytes, handle):
        self._call("cuMemMap", address, nbytes, 0, handle, 0)
        access = self.cuda.CUmemAccessDesc()
        self._place(access.location, device)
        access.flags = self.cuda.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        self._call("cuMemSetAccess", address, nbytes, [access], 1)

    def mem_unmap(self, address, nbytes):
        self._call("cuMemUnmap", address, nbytes)

    def _place(self, location, device):
        location.type = self.cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        location.id = device

    # --------------------------------------------------------------------------------------------- kernels

    @property
    def launches_block(self):
        return self._launches_block

    def launch(self, device, stream, kernel, grid, block, arguments, shared=0):
        try:
            with self._on(device):
                numba_launch.launch(self, device, stream, kernel, grid, block, arguments, shared)
        except AcceleratorError:
            raise
        except Exception as error:  # numba compiled and loaded the kernel
            raise self._restated(error) from error

    def _restated(self, error):
        """An error of numba or of NVIDIA's packages below it, as what it says about the machine; others as they are."""
        if type(error).__name__ in _MISSING:
            return RuntimeError(f"{error}\nKernels are compiled when they are first used. {_INSTALL}")
        name = re.search("CUDA_ERROR_[A-Z0-9_]+", str(error))
        status = name and getattr(self.cuda.CUresult, name[0], None)
        return self._error_of(status) if status else error

    def _error_of(self, status):
        _, text = self.cuda.cuGetErrorString(status)
        message = check_message(text.decode(), status.name)
        return AcceleratorError(f"{message}\n{_INSTALL}" if status.name in _TOO_OLD else message)

    def module_function(self, name, cubin):
        """The handle of a kernel in code that is loaded into the current context, and stays there."""
        return int(self._call("cuModuleGetFunction", self._call("cuModuleLoadData", cubin), name.encode()))

    def launch_kernel(self, *arguments):
        """`cuLaunchKernel`; what is wrong with a grid or a block has a name of its own, as in CUDA's runtime."""
        (status,) = self.cuda.cuLaunchKernel(*arguments)
        if not status:
            return
        if status == self.cuda.CUresult.CUDA_ERROR_INVALID_VALUE:
            raise AcceleratorError(check_message("invalid configuration argument", "CUDA_ERROR_INVALID_CONFIGURATION"))
        self._check(status)

    # ---------------------------------------------------------------------------------------------- graphs

    def stream_begin_capture(self, device, stream, mode):
        with self._on(device):
            self._call("cuStreamBeginCapture", stream, self.cuda.CUstreamCaptureMode(mode))

    def stream_end_capture(self, device, stream):
        with self._on(device):
            return int(self._call("cuStreamEndCapture", stream))

    def stream_capture_id(self, device, stream):
        with self._on(device):
            status, number, *_ = self._call("cuStreamGetCaptureInfo", stream)
        return None if status == self.cuda.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE else int(number)

    def exchange_stream_capture_mode(self, mode):
        return int(self._call("cuThreadExchangeStreamCaptureMode", self.cuda.CUstreamCaptureMode(mode)))

    def graph_node_count(self, graph):
        return self._call("cuGraphGetNodes", graph, 0)[1]

    def graph_debug_dot_print(self, graph, path):
        self._call("cuGraphDebugDotPrint", graph, path.encode(), _VERBOSE)

    def graph_instantiate(self, device, graph):
        with self._on(device):
            return int(self._call("cuGraphInstantiate", graph, _AUTO_FREE_ON_LAUNCH | _USE_NODE_PRIORITY))

    def graph_launch(self, executable, device, stream):
        with self._on(device):
            self._call("cuGraphLaunch", executable, stream)

    def graph_destroy(self, graph):
        self._call("cuGraphDestroy", graph)

    def graph_exec_destroy(self, executable):
        self._call("cuGraphExecDestroy", executable)

    # ---------------------------------------------------------------------------------- streams and events

    def stream_create(self, device, priority=0):
        with self._on(device):
            return int(self._call("cuStreamCreateWithPriority", _NON_BLOCKING, priority))

    def stream_destroy(self, device, stream):
        self._call("cuStreamDestroy", stream)

    def stream_synchronize(self, device, stream):
        with self._on(device):  # the default stream is that of the current context
            self._call("cuStreamSynchronize", stream)

    def stream_query(self, device, stream):
        with self._on(device):
            return self._is_done("cuStreamQuery", stream)

    def stream_wait_event(self, device, stream, event):
        with self._on(device):
            self._call("cuStreamWaitEvent", stream, event, 0)

    def event_create(self, device, enable_timing=False):
        with self._on(device):
            return int(self._call("cuEventCreate", 0 if enable_timing else _DISABLE_TIMING))

    def event_destroy(self, event):
        self._call("cuEventDestroy", event)

    def event_record(self, event, device, stream):
        with self._on(device):
            self._call("cuEventRecord", event, stream)

    def event_query(self, event):
        return self._is_done("cuEventQuery", event)

    def event_synchronize(self, event):
        self._call("cuEventSynchronize", event)

    def event_elapsed_time(self, start, end):
        return self._call("cuEventElapsedTime", start, end)
