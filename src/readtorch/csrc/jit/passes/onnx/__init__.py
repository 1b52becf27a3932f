"""Passes that make ONNX's operators of PyTorch's, and tidy up what comes out. In PyTorch:
`torch/csrc/jit/passes/onnx`.
"""
