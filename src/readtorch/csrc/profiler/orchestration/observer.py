"""What a profiler is asked to do: `ProfilerConfig`, and the activities and scopes that it names.

In PyTorch: `torch/csrc/profiler/orchestration/observer.h`. Explained in the chapter "The profiler".
"""

import enum


class ProfilerActivity(enum.Enum):
    """What is collected: calls on the CPU, kernels and copies on a device."""

    __module__ = "torch._C._profiler"

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5

    def __str__(self):
        return f"ProfilerActivity.{self.name}"


class ProfilerState(enum.Enum):
    """Which profiler runs. KINETO is the one that there is here; the others are named for programs that compare with them."""

    __module__ = "torch._C._profiler"

    Disabled = 0
    CPU = 1
    CUDA = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5
    KINETO = 6
    KINETO_GPU_FALLBACK = 7
    KINETO_PRIVATEUSE1_FALLBACK = 8
    KINETO_PRIVATEUSE1 = 9


class RecordScope(enum.Enum):
    """What a record is of: an operator or a step of the engine, a node of the graph, a name of the program's own …"""

    __module__ = "torch._C._profiler"

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9


class DeviceType(enum.Enum):
    """Where an event took place. In PyTorch: `c10/core/DeviceType.h`."""

    __module__ = "torch._C._autograd"

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20

    def __str__(self):
        return f"DeviceType.{self.name}"


class ExperimentalConfig:
    """Options that PyTorch may change. Of them these have an effect here: capture_overload_names, trace_only."""

    __module__, __qualname__ = "torch._C._profiler", "_ExperimentalConfig"

    def __init__(
        self,
        profiler_metrics=(),
        profiler_measure_per_kernel=False,
        verbose=False,
        performance_events=(),
        enable_cuda_sync_events=False,
        adjust_profiler_step=False,
        disable_external_correlation=False,
        profile_all_threads=False,
        capture_overload_names=False,
        record_python_gc_info=False,
        expose_kineto_event_metadata=False,
        custom_profiler_config="",
        adjust_timestamps=False,
        trace_only=False,
    ):
        self.capture_overload_names = capture_overload_names
        self.custom_profiler_config = custom_profiler_config
        self.trace_only = trace_only


class ProfilerConfig:
    """The settings of one run."""

    __module__ = "torch._C._profiler"

    def __init__(
        self,
        state,
        report_input_shapes,
        profile_memory,
        with_stack,
        with_flops,
        with_modules,
        experimental_config,
        trace_id="",
    ):
        self.state = state
        self.report_input_shapes = report_input_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.experimental_config = experimental_config
        self.trace_id = trace_id
