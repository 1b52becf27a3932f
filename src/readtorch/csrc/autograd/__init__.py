"""The autograd engine. It knows no operation: formulas reach it as nodes, made from the dispatcher's registry.

In PyTorch: `torch/csrc/autograd`. PyTorch has no such file: C++ has the folder. Explained in the chapter "Autograd".
"""
