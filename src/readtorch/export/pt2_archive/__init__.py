"""Files `.pt2`. In PyTorch: `torch/export/pt2_archive/__init__.py`."""

from ._package import is_pt2_package

__all__ = ["is_pt2_package"]

is_pt2_package.__module__ = __name__
