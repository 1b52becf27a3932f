"""`python -m readtorch`: see `readtorch._run`. PyTorch has no such file."""

from ._run import main

if __name__ == "__main__":
    raise SystemExit(main())
