"""The class behind the jagged layout, and its operators. In PyTorch: `torch/nested/_internal`."""
