"""Process groups: ranks that send tensors to one another. In PyTorch: `torch/csrc/distributed/c10d`.

Read in this order: `types`, `store`, `work`, `collective`, `process_group`, then one backend (`threads` is
the shortest), `algorithms` and `reducer`. Explained in the chapter "Process groups, DDP and SyncBatchNorm".
"""
