"""What a profiler is asked to do.

In PyTorch: `torch/csrc/profiler/orchestration`. Explained in the chapter "The profiler".
"""
