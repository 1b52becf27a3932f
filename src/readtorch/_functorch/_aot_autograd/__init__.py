"""The parts of AOTAutograd (`aot_autograd.py`), in the order in which they run:

    schemas.py                       what is known of inputs and outputs before anything is traced
    collect_metadata_analysis.py     the function runs once, on fake tensors, and that is found out
    graph_capture_wrappers.py        the function becomes one that writes to nothing, and its backward is put behind it
    graph_capture.py                 that function is traced: the joint graph
    graph_compile.py                 the graph is cut in two, and both parts are compiled
    runtime_wrappers.py              what runs in place of the function: writes and views are made good

In PyTorch: `torch/_functorch/_aot_autograd/__init__.py` and the files of these names beside it.
"""
