"""The machine that runs instructions.

In PyTorch: `torch/csrc/jit/runtime/interpreter.cpp`. Explained in the chapter "JIT: scripting".
"""

import threading
import warnings
from collections import namedtuple

from readtorch.c10.local_dispatch_key_set import set_thread_state, thread_state
from readtorch.csrc.distributed.future import Future
from readtorch.csrc.jit.api.object import ScriptObject
from readtorch.csrc.jit.ir.type import TensorType

from . import instruction as I
from .instruction import CALL, DROPR, JF, JMP, LOAD, LOADC, LOOP, MOVE, OP, OPN, RET, STORE, STOREN
from .jit_exception import Error, Raised
from .register_special_ops import holds

# The names of the instructions in `_run` are imported one by one: each is compared with every instruction before it.


class Frame:
    """One call that is under way."""

    __slots__ = ("code", "pc", "registers")

    def __init__(self, code):
        self.code = code
        self.pc = 0
        self.registers = [None] * code.register_size


def run(code, arguments):
    """Run `code` on the values of the graph's inputs; returns the list of its outputs' values.

    Raises jit.Error if the program raises, RuntimeError if an operator does; both with TorchScript's
    traceback.
    """
    frames = [Frame(code)]
    try:
        return _run(frames, list(arguments), [])
    except Error:
        raise
    except Raised as raised:
        error = Error(_failure(frames, f"{raised.class_name or 'RuntimeError'}: {raised}"))
        error.python_class_name, error.original_msg = raised.class_name, str(raised)
        raise error from None
    except Exception as error:
        raise RuntimeError(_failure(frames, f"RuntimeError: {_message(error)}")) from error


def raise_failure(code, position, error):
    """Raise what `run` raises if instruction number `position` of `code` fails."""
    frame = Frame(code)
    frame.pc = position + 1
    raise RuntimeError(_failure([frame], f"RuntimeError: {_message(error)}")) from error


def _message(error):
    """An exception's text: KeyError quotes what it is given."""
    return error.args[0] if isinstance(error, KeyError) and error.args else str(error)


def _run(frames, stack, entered):
    push, pop = stack.append, stack.pop
    while frames:  # the last one runs; if an operator raises, they say who was running
        frame = frames[-1]
        code, registers, pc = frame.code, frame.registers, frame.pc
        instructions, constants, operators = code.instructions, code.constants, code.operators
        while True:
            op, X, N = instructions[pc]
            pc += 1
            if op == LOAD:
                push(registers[X])
            elif op == OP or op == OPN:
                function, inputs, outputs = operators[X]
                frame.pc = pc
                if inputs == 1:
                    result = function(pop())
                else:
                    first = len(stack) - inputs
                    values = stack[first:]
                    del stack[first:]
                    result = function(*values)
                if outputs == 1:
                    push(result)
                elif outputs:
                    stack += result
            elif op == STORE:
                registers[X] = pop()
            elif op == MOVE:
                push(registers[X])
                registers[X] = None
            elif op == LOADC:
                push(constants[X])
            elif op == JF:
                if not pop():
                    pc += X - 1
            elif op == JMP:
                pc += X - 1
            elif op == LOOP:  # on the stack: iterations begun, their maximum, the condition, what the loop carries
                base = len(stack) - N - 1
                if stack[base] < stack[base + 1] and stack[base + 2]:
                    stack[base], stack[base + 2] = stack[base] + 1, stack[base]
                else:
                    del stack[base : base + 3]
                    pc += X - 1
            elif op == STOREN:
                registers[X : X + N] = stack[-N:]
                del stack[-N:]
            elif op == DROPR:
                registers[X] = None
            elif op == CALL:
                frame.pc = pc
                frames.append(Frame(code.functions[X].executor().code()))
                break
            elif op == RET:
                frames.pop()
                break
            else:
                frame.pc = pc
                _RARE[op](code, stack, X, N, entered)
    return stack


# ------------------------------------------------------------------------------------- the other instructions


def _take(stack, count):
    """Pop `count` values, the deepest first."""
    if not count:
        return []
    values = stack[-count:]
    del stack[-count:]
    return values


def _drop(code, stack, X, N, entered):
    stack.pop()


def _list_construct(code, stack, X, N, entered):
    stack.append(_take(stack, N))


def _tuple_construct(code, stack, X, N, entered):
    stack.append(tuple(_take(stack, N)))


def _named_tuple_construct(code, stack, X, N, entered):
    stack.append(named_tuple_class(code.types[X])(*_take(stack, N)))


def named_tuple_class(type):
    """The Python class of a named tuple's type: made once for each set of fields."""
    key = (type.name() or "NamedTuple", type.fields)
    if key not in _named_tuple_classes:
        _named_tuple_classes[key] = namedtuple(*key, defaults=tuple(type.defaults.values()) or None)
    return _named_tuple_classes[key]


_named_tuple_classes = {}


def _dict_construct(code, stack, X, N, entered):
    values = _take(stack, N)
    stack.append(dict(zip(values[::2], values[1::2])))


def _list_unpack(code, stack, X, N, entered):
    values = stack.pop()
    if len(values) != N:
        raise RuntimeError(f"Expected {N} elements in a list but found {len(values)}")
    stack += values


def _tuple_slice(code, stack, X, N, entered):
    stack.append(stack.pop()[X : X + N])


def _get_attr(code, stack, X, N, entered):
    stack.append(stack.pop().slots[X])


def _set_attr(code, stack, X, N, entered):
    value = stack.pop()
    stack.pop().slots[X] = value


def _create_object(code, stack, X, N, entered):
    stack.append(ScriptObject(code.types[X]))


def _isinstance(code, stack, X, N, entered):
    value = stack.pop()
    stack.append(any(holds(value, type) for type in code.types[X : X + N]))


def _interface_call(code, stack, X, N, entered):
    values = _take(stack, N)
    stack += values[0].type.getMethod(code.constants[X]).executor().run(values)


def _fork(code, stack, X, N, entered):
    executor = code.forked[X]
    outputs = executor.graph.outputs()
    type = outputs[0].type() if outputs else TensorType.get()
    stack.append(fork(lambda *values: _only(executor.run(values)), _take(stack, N), type))


def _only(outputs):
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _wait(code, stack, X, N, entered):
    stack.append(stack.pop().wait())


def _warn(code, stack, X, N, entered):
    message, level = _take(stack, 2)
    warnings.warn(message, stacklevel=4)


def _raise(code, stack, X, N, entered):
    message, class_name = _take(stack, 2)
    raise Raised(message, class_name)


def _enter(code, stack, X, N, entered):
    """entered: the objects of the `with` statements that are under way."""
    object = stack.pop()
    entered.append(object)
    stack += object.type.getMethod("__enter__").executor().run([object])


def _exit(code, stack, X, N, entered):
    object = entered.pop()
    stack += object.type.getMethod("__exit__").executor().run([object, None, None, None])


_RARE = {
    I.DROP: _drop,
    I.LIST_CONSTRUCT: _list_construct,
    I.TUPLE_CONSTRUCT: _tuple_construct,
    I.NAMED_TUPLE_CONSTRUCT: _named_tuple_construct,
    I.DICT_CONSTRUCT: _dict_construct,
    I.LIST_UNPACK: _list_unpack,
    I.TUPLE_SLICE: _tuple_slice,
    I.GET_ATTR: _get_attr,
    I.SET_ATTR: _set_attr,
    I.CREATE_OBJECT: _create_object,
    I.ISINSTANCE: _isinstance,
    I.INTERFACE_CALL: _interface_call,
    I.FORK: _fork,
    I.WAIT: _wait,
    I.WARN: _warn,
    I.RAISE: _raise,
    I.ENTER: _enter,
    I.EXIT: _exit,
}


# ----------------------------------------------------------------------------------------------------- errors


def _failure(frames, last_line):
    """What is raised when an operator fails: the calls that led there, each with its line, and the reason."""
    entries = [entry for frame in frames for entry in _stack_entries(frame)]
    lines = "".join(range.highlight(function) for function, range in entries if range is not None)
    return (
        "The following operation failed in the TorchScript interpreter.\n"
        f"Traceback of TorchScript (most recent call last):\n{lines}{last_line}\n"
    )


def _stack_entries(frame):
    """(function, range) for a frame's call, outermost first: also of the calls that inlining removed."""
    node = frame.code.sources[frame.pc - 1]
    calls = node.callstack()
    functions = [frame.code.function_name] + [call.function for call in calls]
    ranges = [call.range for call in calls] + [node.sourceRange()]
    return list(zip(functions, ranges))


def fork(function, arguments, element_type=None):
    """Start `function(*arguments)` in a thread of its own, under the caller's dispatch mask; returns its
    Future.

    In PyTorch: a task of the inter-op thread pool, and a task that waits gives its thread back.
    """
    future = Future()
    future.element_type = element_type
    state = thread_state()

    def run():
        set_thread_state(state)
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="fork", daemon=True).start()
    return future
