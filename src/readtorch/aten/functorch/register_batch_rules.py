"""Imports the batching rules, and makes them the kernels of all operators at FuncTorchBatched.

In PyTorch: `aten/src/ATen/functorch/LegacyBatchingRegistrations.cpp` has the fallback of the key, and each file of rules registers
its own.
"""

from readtorch.aten.operator_entry import set_fallback
from readtorch.c10.dispatch_key import BATCHED

from . import (  # noqa: F401  (each registers its rules)
    batch_rules_activation,
    batch_rules_binary_ops,
    batch_rules_convolution,
    batch_rules_decompositions,
    batch_rules_dynamic,
    batch_rules_factory,
    batch_rules_linear_algebra,
    batch_rules_loss,
    batch_rules_modules,
    batch_rules_norm,
    batch_rules_pooling,
    batch_rules_randomness,
    batch_rules_reduce_ops,
    batch_rules_scatter_ops,
    batch_rules_unary_ops,
    batch_rules_views,
    legacy_batching_registrations,
)
from .batch_rules_helper import make_batched_kernel

set_fallback(BATCHED, make_batched_kernel, written=True)
