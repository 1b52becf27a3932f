"""What goes wrong in compiling. In PyTorch: `torch/_dynamo/exc.py`."""


class TorchDynamoException(RuntimeError):
    """The base of all of them."""


class InvalidBackend(TorchDynamoException):
    def __init__(self, name):
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")


class Unsupported(TorchDynamoException):
    """With fullgraph=True: something that would have to run as it is written."""


class FailOnRecompileLimitHit(TorchDynamoException):
    """With fullgraph=True: more versions than `config.recompile_limit`."""
