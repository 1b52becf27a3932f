"""Runs a program under PyTorch: `python reference.py program.py`.

A torchvision whose C++ operators were built for another PyTorch (its wheel for CUDA beside a torch without) does not even import.
No program here calls them, so their schemas are enough.
"""

import os
import runpy
import sys

import torch

try:
    import torchvision  # noqa: F401
except RuntimeError:
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
except ImportError:
    pass

sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
