"""`readtorch.fx`: programs as graphs that a program can change. In PyTorch: `torch/fx/__init__.py`.

    symbolic_trace   runs a module with proxies and records a Graph   _symbolic_trace.py, proxy.py
    Graph, Node      the operations in order                          graph.py, node.py
    GraphModule      a module whose forward is generated from it      graph_module.py, _gen_python_code.py
    Interpreter      runs it node by node; Transformer rewrites it    interpreter.py
    replace_pattern  finds a pattern, puts something else there       subgraph_rewriter.py

A sigmoid in place of each relu:

    traced = readtorch.fx.symbolic_trace(model)
    for node in traced.graph.find_nodes(op="call_function", target=readtorch.relu):
        node.target = readtorch.sigmoid
    traced.recompile()

More of it: `passes`, and `experimental` with `make_fx`. Explained in the chapter "FX".
"""

from . import immutable_collections
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "symbolic_trace",
    "Tracer",
    "wrap",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Transformer",
    "Node",
    "Proxy",
    "replace_pattern",
    "has_side_effect",
    "map_arg",
]
