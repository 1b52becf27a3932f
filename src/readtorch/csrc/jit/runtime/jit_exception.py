"""What a `raise` in TorchScript throws.

In PyTorch: `torch/csrc/jit/runtime/jit_exception.h`; `torch.jit.Error` in Python.
"""


class Error(Exception):
    """The program raised: the message has TorchScript's traceback. python_class_name: of the class that it
    named.
    """

    python_class_name = None
    original_msg = None


class Raised(Exception):
    """On the way from a prim::RaiseException to whoever runs the graph, who adds the traceback."""

    def __init__(self, message, class_name):
        super().__init__(message)
        self.class_name = class_name
