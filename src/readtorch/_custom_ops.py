"""Names that `torch.library` had at first.

In PyTorch: `torch/_custom_ops.py`, with more of that older interface.
"""

from .library import get_ctx
from .library import register_fake as impl_abstract

__all__ = ["get_ctx", "impl_abstract"]
