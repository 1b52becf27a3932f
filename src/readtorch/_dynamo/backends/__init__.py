"""Backends: what makes something that runs of a captured graph.

A backend is a function of (GraphModule, example inputs) that returns a function of the graph's inputs, which returns a tuple or list.

    registry.py     their names
    debugging.py    those that run operators one by one
    inductor.py     the one that compiles
    common.py       AOTAutograd for backends

In PyTorch: `torch/_dynamo/backends`.
"""
