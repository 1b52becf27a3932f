"""Choosing activations to save within a memory budget. In PyTorch: `torch/_functorch/_activation_checkpointing/__init__.py`."""
