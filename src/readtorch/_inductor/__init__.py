"""The compiler behind `readtorch.compile`: from a graph of operators to kernels. Explained in the chapter "Inductor: loops, fusion, code".

    compile_fx.py   what Dynamo calls: a GraphModule becomes something that runs
    graph.py        the graph as TorchScript's passes and the fuser know it

In PyTorch: `torch/_inductor/__init__.py`; it tiles, schedules, tunes, and writes C++ and Triton.
"""
