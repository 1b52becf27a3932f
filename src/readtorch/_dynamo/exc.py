"""Exceptions. In PyTorch: `torch/_dynamo/exc.py`."""

from enum import Enum, auto


class TorchDynamoException(RuntimeError):
    """The base of all of them."""


class InvalidBackend(TorchDynamoException):
    def __init__(self, name):
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")


class Unsupported(TorchDynamoException):
    """Something that would have to run as it is written. With fullgraph=True the caller sees it; else the graph breaks there.

    gb_type: the kind of it, in PyTorch's words.
    """

    def __init__(self, message, gb_type=None):
        super().__init__(message)
        self.gb_type = gb_type or message


class DifferentSizes(Unsupported):
    """The two functions of `cond` return tensors of different sizes: there is no one tensor that stands for both."""


class UncapturedHigherOrderOpError(TorchDynamoException):
    """A function that an operator takes (`cond`, `while_loop`) cannot be captured whole. No break of the graph helps."""


class TorchRuntimeError(TorchDynamoException):
    """An operator in such a function does not take its operands."""


class FailOnRecompileLimitHit(TorchDynamoException):
    """With fullgraph=True: more versions than `config.recompile_limit`."""


class ObservedException(TorchDynamoException):
    """The interpreted program raises. variable: the exception, see `ExceptionVariable`."""

    def __init__(self, variable):
        super().__init__(f"raised exception {variable.cls.__name__}")
        self.variable = variable


class CannotGenerate(TorchDynamoException):
    """What was captured cannot be written as a function: the program runs as it is written."""


class SkipFrame(TorchDynamoException):
    """There is nothing to compile: the function does no operator. It runs as it is written from now on, as in PyTorch."""


class SpecializeSizes(TorchDynamoException):
    """Sizes that were left open must be known after all: the capture begins again with all sizes as they are."""


def unimplemented(gb_type, explanation="", context="", hints=()):
    """Raise Unsupported, with PyTorch's layout of the message."""
    lines = [gb_type]
    lines += [f"  Explanation: {explanation}"] if explanation else []
    lines += [f"  Hint: {hint}" for hint in hints]
    lines += ["", f"  Developer debug context: {context}"] if context else []
    raise Unsupported("\n".join(lines), gb_type)


class UserErrorType(Enum):
    DYNAMIC_CONTROL_FLOW = auto()
    ANTI_PATTERN = auto()
    STANDARD_LIBRARY = auto()
    CONSTRAINT_VIOLATION = auto()
    DYNAMIC_DIM = auto()
    INVALID_INPUT = auto()
    INVALID_OUTPUT = auto()
    UNSUPPORTED_ALIASED_MUTATED_DYNAMIC_INPUTS = auto()


class UserError(TorchDynamoException):
    """Arguments of `export` that do not fit. case_name: of an example in PyTorch's collection, to which the message then points."""

    def __init__(self, error_type, msg, case_name=None):
        if case_name is not None:
            msg += (" " if msg.endswith(".") else "\n") + (
                "For more information about this error, see: "
                f"https://pytorch.org/docs/main/generated/exportdb/index.html#{case_name.replace('_', '-')}"
            )
        super().__init__(msg)
        self.error_type = error_type
        self.msg = self.message = msg
