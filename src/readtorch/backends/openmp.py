"""OpenMP: not here, threads are those of aten/parallel.py. In PyTorch: `torch/backends/openmp/__init__.py`."""


def is_available():
    """Whether work is divided among threads by OpenMP."""
    return False
