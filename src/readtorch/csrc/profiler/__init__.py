"""What is under the profiler: the queues that events are put into, their shapes and FLOPs, the file for Chrome.

In PyTorch: `torch/csrc/profiler`. Explained in the chapter "The profiler".
"""
