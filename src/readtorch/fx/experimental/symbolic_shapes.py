"""What is said of sizes that are left open. In PyTorch: `torch/fx/experimental/symbolic_shapes.py`, with `ShapeEnv`, which keeps
equations of them; here Dynamo keeps guards on expressions (`_dynamo/variables/tensor.py`).
"""


class ConstraintViolationError(RuntimeError):
    """A program works for one size alone where `mark_dynamic` has said that it works for others."""
