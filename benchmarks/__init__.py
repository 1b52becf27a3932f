"""Times readtorch against its reference in one interleaved run. See `python -m benchmarks --help`."""
