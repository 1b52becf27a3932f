"""Batch norm without running statistics, which `vmap` cannot write to.

In PyTorch: `torch/_functorch/batch_norm_replacement.py`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.nn.modules.batchnorm import _BatchNorm

from .utils import exposed_in


def batch_norm_without_running_stats(module):
    """Take the running statistics from a batch norm; other modules stay as they are."""
    if isinstance(module, _BatchNorm) and module.track_running_stats:
        module.running_mean = module.running_var = module.num_batches_tracked = None
        module.track_running_stats = False


@exposed_in("readtorch.func")
def replace_all_batch_norm_modules_(root):
    """Make every batch norm in a module one that normalizes with the statistics of its batch alone. Returns the module."""
    for module in root.modules():
        batch_norm_without_running_stats(module)
    return root
