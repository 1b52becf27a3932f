"""Process groups: ranks that send tensors to one another. In PyTorch: `torch/csrc/distributed/c10d/init.cpp` and what it binds.

Read in this order: `types`, `store`, `work`, `process_group_wrapper`, `process_group`, then one backend (`multi_threaded_pg`
is the shortest), `algorithms` and `reducer`. Explained in the chapter "Process groups, DDP and SyncBatchNorm".
"""
