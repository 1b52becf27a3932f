"""How launchers on several machines meet. In PyTorch: `torch/distributed/elastic/rendezvous/__init__.py`."""
