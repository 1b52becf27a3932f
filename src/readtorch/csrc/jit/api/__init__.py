"""What holds graphs: functions, classes, objects. In PyTorch: `torch/csrc/jit/api`."""
