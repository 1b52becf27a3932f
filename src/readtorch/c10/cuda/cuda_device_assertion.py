"""What a kernel takes for granted: `cuda_kernel_assert(0 <= i < size, "index out of bounds")`.

Note [ When a kernel finds an error ]
A kernel cannot raise: the call that launched it has long returned. Where an assertion does not hold, the chip stops the
whole grid and the driver writes to standard error which one it was, in which block and which thread. Python learns of it
from the next call that asks the device for something: `CUDA error: device-side assert triggered`. Every later call gets
the same answer, for the device's context is lost; only a new process gets a new one. With `CUDA_LAUNCH_BLOCKING=1` each
launch waits for its kernel, so the answer comes where the mistake is.

The chip has an entry for it, `__assertfail`, which is given four texts and a line, as constants of the compiled kernel.
So a function that holds an assertion gets one of its own, which knows the file and the line: `within`.

In PyTorch: `CUDA_KERNEL_ASSERT` in `torch/headeronly/macros/Macros.h`; `c10/cuda/CUDADeviceAssertion.h` has another,
`CUDA_KERNEL_ASSERT2`, that writes into memory which the host reads.
"""

import ast
import functools
import linecache
import sys

from .cuda_exception import check_message

NAME = "cuda_kernel_assert"


class DeviceAssert(Exception):
    """An assertion of a simulated kernel did not hold."""

    def __init__(self, block, thread):
        self.block, self.thread = tuple(block), tuple(thread)
        super().__init__(f"an assertion does not hold in block {self.block}, thread {self.thread}")


class KernelAssertion:
    """What `cuda_kernel_assert` is: a function in Python, for the simulator, and one for numba in each function that calls it."""

    def __init__(self, simulated):
        self.simulated = simulated
        self.__doc__ = simulated.__doc__

    def __call__(self, condition, message=""):
        raise RuntimeError(f"{NAME} is for kernels")

    @functools.cache
    def within(self, code):
        """The assertion as numba makes instructions of it where a function's code calls it."""
        return make_assertion(code)


def simulated(condition, message=""):
    """Stop the grid unless the condition holds: Note [ When a kernel finds an error ]. The message is a literal."""
    if not condition:
        raise DeviceAssert(cuda.blockIdx, cuda.threadIdx)  # noqa: F821  (the simulator: Note [ Whose cuda ])


cuda_kernel_assert = KernelAssertion(simulated)


# ----------------------------------------------------------------------------------------------- what is said of it


@functools.cache
def assertions_in(file):
    """The calls of `cuda_kernel_assert` in a source file: [(first line, last line, text, message)]."""
    source = "".join(linecache.getlines(file))
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == NAME:
            condition = " ".join(ast.get_source_segment(source, node.args[0]).split())
            message = node.args[1].value if len(node.args) > 1 else ""
            text = f'{condition} and "{message}"' if message else condition
            found.append((node.lineno, node.end_lineno, text, message))
    return found


def lines_of(code):
    """All lines of a function."""
    return {line for *_, line in code.co_lines() if line is not None}


def found_in(code, message):
    """(text, line) of the assertion with that message in a function."""
    lines = lines_of(code)
    for first, last, text, own in assertions_in(code.co_filename):
        if own == message and lines.intersection(range(first, last + 1)):
            return text, first
    return message, code.co_firstlineno


def report(error):
    """Write to standard error what the driver of a GPU writes, and return the message that an AcceleratorError has."""
    frame = error.__traceback__
    while frame.tb_next.tb_next is not None:
        frame = frame.tb_next
    code, line = frame.tb_frame.f_code, frame.tb_lineno
    text = next((t for first, last, t, _ in assertions_in(code.co_filename) if first <= line <= last), "?")
    block, thread = (",".join(map(str, place)) for place in (error.block, error.thread))
    where = f"{code.co_filename}:{line}: {code.co_name}: block: [{block}], thread: [{thread}]"
    print(f"{where} Assertion `{text}` failed.", file=sys.stderr)
    return check_message("device-side assert triggered", "CUDA_ERROR_ASSERT")


# --------------------------------------------------------------------------------------------------------- for numba


def make_assertion(code):
    from numba.cuda import cgutils, types
    from numba.cuda.extending import intrinsic

    def instructions(text, line):
        def emit(context, builder, signature, arguments):
            from llvmlite import ir

            place, number, letters = ir.IntType(8).as_pointer(), ir.IntType(32), ir.IntType(64)
            kind = ir.FunctionType(ir.VoidType(), [place, place, number, place, letters])
            fail = cgutils.get_or_insert_function(builder.module, kind, "__assertfail")
            fail.attributes.add("noreturn")
            with builder.if_then(builder.not_(arguments[0]), likely=False):
                said, file, function = [
                    context.insert_string_const_addrspace(builder, constant)
                    for constant in (text, code.co_filename, code.co_name)
                ]
                builder.call(fail, [said, file, ir.Constant(number, line), function, ir.Constant(letters, 1)])
            return context.get_dummy_value()

        return emit

    @intrinsic
    def kernel_assert(typing, condition, *message):
        if not all(isinstance(kind, types.StringLiteral) for kind in message):
            return None  # numba asks again with the literal
        text, line = found_in(code, message[0].literal_value if message else "")
        return types.none(condition, types.StarArgTuple.from_types(message)), instructions(text, line)

    return kernel_assert
