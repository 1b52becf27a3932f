"""Which operators a program calls, how often, how long they take, with which shapes, and how much memory they allocate.

    with readtorch.profiler.profile() as prof:
        model(x).sum().backward()
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    prof.export_chrome_trace("trace.json")

It stands on the observers of a thread (aten/record_function.py): while nothing is profiled, no call knows of it.

In PyTorch: `torch/profiler/__init__.py`. Explained in the chapter "The profiler".
"""

from readtorch.autograd.profiler import KinetoStepTracker, record_function
from readtorch.csrc.autograd.profiler_kineto import kineto_available
from readtorch.csrc.autograd.profiler_kineto import supported_activities as _supported_activities
from readtorch.csrc.profiler.orchestration.observer import DeviceType, ProfilerActivity, RecordScope
from readtorch.csrc.profiler.orchestration.observer import ExperimentalConfig as _ExperimentalConfig
from . import itt
from .profiler import _KinetoProfile, ProfilerAction, profile, schedule, supported_activities, tensorboard_trace_handler

__all__ = [
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "DeviceType",
    "itt",
    "record_function",
]
