"""Whether this thread lets Python choose the parts of compositions: AOTAutograd does, which traces what a compiler can take apart.

In PyTorch: `c10/core/impl/PythonDispatcherTLS.h`, and the kernels that `torch/_decomp/decompositions.py` registers for it by `py_impl`.
Those that differ here: `dropout` becomes `native_dropout` on every device, `batch_norm` an operator whose schema tells of its writes to the
running statistics, and recurrent layers go step by step.
"""

import contextlib
import threading


class PythonDispatcherTLS(threading.local):
    enabled = False


tls = PythonDispatcherTLS()


@contextlib.contextmanager
def enable_python_dispatcher():
    before, tls.enabled = tls.enabled, True
    try:
        yield
    finally:
        tls.enabled = before


def python_dispatcher_enabled():
    return tls.enabled
