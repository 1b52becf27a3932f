"""What runs graphs: operators and the interpreter. In PyTorch: `torch/csrc/jit/runtime`.

Importing the package declares all operators, in the order in which overloads of one name are tried.
"""

from . import register_c10_ops, register_python_bindings, register_fuser_ops, register_prim_ops, register_special_ops
from readtorch.csrc.jit.frontend import builtin_functions
