"""The autograd engine. It knows no operation: formulas reach it as nodes, made from the dispatcher's registry.

PyTorch has no such file: C++ has the folder `torch/csrc/autograd`. Explained in the chapter "Autograd".
"""
