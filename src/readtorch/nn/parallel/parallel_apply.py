"""Several modules at once, each in a thread and on a device of its own.

In PyTorch: `torch/nn/parallel/parallel_apply.py`. Explained in the chapter "DataParallel".
"""

import threading

import readtorch
from readtorch._utils import ExceptionWrapper
from readtorch.cuda._utils import _get_device_index

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj):
    """The first tensor found in nested lists, tuples and dicts; None if there is none."""
    if isinstance(obj, readtorch.Tensor):
        return obj
    if isinstance(obj, dict):
        obj = obj.items()
    elif not isinstance(obj, (list, tuple)):
        return None
    return next((found for found in map(get_a_var, obj) if found is not None), None)


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """A list of `module(*input, **kwargs)`, the i-th on devices[i], with that device current.

    Each call has a thread of its own, with the caller's grad mode, and autocast where the caller has it on, but with its default
    dtype. An exception is raised here again, with the thread's traceback in its text, once all threads have ended.
    """
    count = len(modules)
    kwargs_tup = ({},) * count if kwargs_tup is None else kwargs_tup
    devices = [None] * count if devices is None else devices
    for name, values in (("inputs", inputs), ("kwargs_tup", kwargs_tup), ("devices", devices)):
        if len(values) != count:
            raise AssertionError(f"The number of modules {count} is not equal to the number of {name} {len(values)}")
    devices = [_get_device_index(x, True) for x in devices]
    if not readtorch.cuda.is_available():
        raise AssertionError("No available accelerator found.")
    streams = [readtorch.cuda.current_stream(x) for x in devices]
    results = [None] * count
    grad_enabled, autocast_enabled = readtorch.is_grad_enabled(), readtorch.is_autocast_enabled("cuda")

    def work(i):
        readtorch.set_grad_enabled(grad_enabled)
        try:
            with (
                readtorch.cuda.device(devices[i]),
                readtorch.cuda.stream(streams[i]),
                readtorch.autocast("cuda", enabled=autocast_enabled),
            ):
                input = inputs[i] if isinstance(inputs[i], (list, tuple)) else (inputs[i],)
                results[i] = modules[i](*input, **kwargs_tup[i])
        except Exception:
            results[i] = ExceptionWrapper(where=f"in replica {i} on device {devices[i]}")

    if count == 1:
        work(0)
    else:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for result in results:
        if isinstance(result, ExceptionWrapper):
            result.reraise()
    return results
