"""Imports every module that declares operators, in the order in which overloads of one name are tried."""
from . import register_c10_ops, register_faces  # noqa: F401, I001
from . import (
    register_container_ops,
    register_fuser_ops,
    register_prim_ops,
    register_special_ops,
    register_string_ops,
)  # noqa: F401, I001
