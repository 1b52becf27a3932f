"""Whether an operator's fake kernel gives tensors like the real ones.

In PyTorch: `torch/testing/_internal/optests/fake_tensor.py`. Explained in the chapter "One operator call".
"""

from readtorch._library.utils import is_builtin
from readtorch._subclasses.fake_utils import CrossRefFakeMode


def fake_check(op, args, kwargs):
    """Raises what CrossRefFakeMode raises for the call."""
    with CrossRefFakeMode(ignore_op_fn=is_builtin):
        op(*args, **kwargs)
