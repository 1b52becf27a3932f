"""PTX made into C: each kernel becomes a C function of one thread, which the fake driver calls for all threads.

    module.py        a PTX module: its variables and functions
    function.py      one function: registers, operands, statements
    instructions.py  the table of instructions; control.py, memory.py, integers.py, floating.py, conversions.py and warps.py
                     fill it
    objects.py       gcc, and the folder of what it made

Registers are unsigned integers of their width; what an instruction takes them for (float, signed) is said where they are read
and written. driver/ptx_runtime.h has what C has no operator for. PTX that is not known raises `Unsupported`: nothing is guessed.
"""
