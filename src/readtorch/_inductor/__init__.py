"""The compiler behind `readtorch.compile`: from a graph of operators to kernels. Explained in the chapter "Inductor: loops, fusion, code".

    compile_fx.py       what Dynamo calls; decomposition.py: which operators AOTAutograd takes apart
    graph.py            node by node, operators become
    ir.py               functions from an index to an element, as lowering.py says; virtualized.py: what these are written against
    dependencies.py     what they read; sizevars.py: arithmetic of indices
    scheduler.py        which loops are one
    codegen/            text of kernels, and of what calls them
    output_code.py      what runs

In PyTorch: `torch/_inductor/__init__.py`; it also tiles, tunes, and writes C++ and Triton.
"""
