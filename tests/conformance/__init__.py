"""PyTorch's own operator test inputs (op_db) run on both implementations. See `python -m tests.conformance --help`."""
