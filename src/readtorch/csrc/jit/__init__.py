"""TorchScript: an intermediate representation of programs, what writes it, what rewrites it and what runs it.

    frontend/   what writes it: the tracer, the compiler of Python source
    ir/         Graph, Block, Node, Value, their types and their text
    passes/     what rewrites it, one file each
    runtime/    what runs it: operators, the interpreter
    api/        functions, classes and objects that hold graphs

In PyTorch: `torch/csrc/jit`, which `torch/csrc/jit/python/init.cpp` binds. Explained in the chapters "JIT: tracing" and "JIT: scripting".
"""
