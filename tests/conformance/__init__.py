"""PyTorch's own operator test inputs on both implementations: `python -m tests.conformance --help`."""
