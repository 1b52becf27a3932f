"""Timings with repetitions, statistics and tables. In PyTorch: `torch/utils/benchmark/__init__.py`."""

from .utils.common import *  # noqa: F403
from .utils.compare import *  # noqa: F403
from .utils.fuzzer import *  # noqa: F403
from .utils.timer import *  # noqa: F403
