"""Graphs: what they are made of, their types and their text. In PyTorch: `torch/csrc/jit/ir`."""

from . import type  # types come first: everything else names them
from .graph import Graph
from .irparser import parse_ir

__all__ = ["Graph", "parse_ir"]
