"""Functions from graphs to graphs. In PyTorch: `torch/fx/passes/__init__.py`.

    shape_prop.py                 notes the sizes of each value
    split_module.py               cuts a graph into submodules
    utils/matcher_utils.py        finds a pattern
    infra/pass_manager.py         runs passes one behind the other
    dialect/common/cse_pass.py    computes common subexpressions once

Each takes a GraphModule.
"""
