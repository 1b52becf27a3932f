"""What is known of values while a function is interpreted: a class for each kind. In PyTorch: `torch/_dynamo/variables/__init__.py`."""
