"""What is known of processes that were started for others. In PyTorch: `torch/distributed/elastic/multiprocessing/__init__.py`."""
