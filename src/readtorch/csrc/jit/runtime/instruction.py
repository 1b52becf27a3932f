"""The instructions of the machine that runs graphs.

It has registers, one for each value that is stored, and a stack on which operators find their arguments and
leave their results. X and N are an instruction's numbers.

In PyTorch: `torch/csrc/jit/runtime/instruction.h`. Explained in the chapter "JIT: scripting".
"""

from typing import NamedTuple

# name: (number, which of X and N mean something)
_TABLE = {
    "OP": "X",  # run operator X on its arguments
    "LOAD": "X",  # push register X
    "MOVE": "X",  # push register X and clear it: this is its last use
    "STORE": "X",  # pop into register X
    "LOADC": "X",  # push constant X
    "STOREN": "XN",  # pop N values into the registers from X on
    "OPN": "XN",  # run operator X, which takes any number of arguments, on N of them
    "DROPR": "X",  # clear register X
    "DROP": "",  # pop
    "JF": "X",  # pop; if it is false jump by X
    "JMP": "X",  # jump by X
    "LOOP": "XN",  # begin an iteration of the loop, or leave it and jump by X; N inputs
    "LIST_CONSTRUCT": "XN",  # pop N values, push a list of them (X: its type)
    "TUPLE_CONSTRUCT": "N",
    "NAMED_TUPLE_CONSTRUCT": "XN",
    "DICT_CONSTRUCT": "XN",  # pop N keys and values
    "LIST_UNPACK": "N",  # pop a list, push its N elements
    "TUPLE_SLICE": "XN",  # pop a tuple, push N of its elements from X on
    "GET_ATTR": "X",  # pop an object, push what is in slot X
    "SET_ATTR": "X",  # pop a value and an object, write slot X
    "CREATE_OBJECT": "X",  # push a new object of type X
    "ISINSTANCE": "XN",  # pop a value, push whether it has one of the N types from X on
    "CALL": "X",  # call function X: a new frame
    "INTERFACE_CALL": "XN",  # call the method whose name is constant X
    "RET": "",  # leave the frame
    "FORK": "XN",  # start function X on N values as a task of its own, push its Future
    "WAIT": "",  # pop a Future, push its value
    "WARN": "X",
    "RAISE": "",  # pop a class name and a message
    "ENTER": "",  # call __enter__ of the object on the stack
    "EXIT": "",  # call __exit__ of the object entered last
}
OPERANDS = list(_TABLE.values())
NAMES = list(_TABLE)
(
    OP,
    LOAD,
    MOVE,
    STORE,
    LOADC,
    STOREN,
    OPN,
    DROPR,
    DROP,
    JF,
    JMP,
    LOOP,
    LIST_CONSTRUCT,
    TUPLE_CONSTRUCT,
    NAMED_TUPLE_CONSTRUCT,
    DICT_CONSTRUCT,
    LIST_UNPACK,
    TUPLE_SLICE,
    GET_ATTR,
    SET_ATTR,
    CREATE_OBJECT,
    ISINSTANCE,
    CALL,
    INTERFACE_CALL,
    RET,
    FORK,
    WAIT,
    WARN,
    RAISE,
    ENTER,
    EXIT,
) = range(len(NAMES))


class Instruction(NamedTuple):
    op: int
    X: int = 0
    N: int = 0

    def __str__(self):
        shown = [str(getattr(self, letter)) for letter in OPERANDS[self.op]]
        return " ".join([NAMES[self.op], *shown])
