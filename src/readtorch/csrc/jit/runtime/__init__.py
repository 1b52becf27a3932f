"""What runs graphs: operators and the interpreter. In PyTorch: `torch/csrc/jit/runtime`.

Importing the package declares all operators, in the order in which overloads of one name are tried.
"""
from . import register_c10_ops, register_faces  # noqa: F401, I001
from . import (  # noqa: F401
    register_container_ops,
    register_fuser_ops,
    register_prim_ops,
    register_special_ops,
    register_string_ops,
)
from ..frontend import builtin_functions  # noqa: F401
