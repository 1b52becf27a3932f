"""What may still change in PyTorch. In PyTorch: `torch/fx/experimental/__init__.py`.

    proxy_tensor.py   make_fx: a graph of the operators that a function calls
    const_fold.py     what depends on no input is computed once
    rewriter.py       a Tracer that records assert
    graph_gradual_typechecker.py  sizes that the program states, checked through a graph

All of it stands on `torch.fx`.
"""
