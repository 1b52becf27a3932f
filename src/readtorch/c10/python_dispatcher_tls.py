"""Whether this thread lets Python choose the parts of compositions: AOTAutograd does, which traces what a compiler can take apart.

In PyTorch: `c10/core/impl/PythonDispatcherTLS.h`, and the kernels that `torch/_decomp/decompositions.py` registers for it by `py_impl`.
There are two here: `dropout`, which becomes `native_dropout` on every device, and `batch_norm`, whose writes to the running
statistics the schema of `_native_batch_norm_legit` tells of.
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
