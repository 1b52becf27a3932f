"""Logging which parts of the library a program uses.

In PyTorch: `c10/util/Logging.cpp`.
"""

import os
import sys

_logged = set()


def _log_api_usage_once(event):
    """Write `event` to stderr if the environment has PYTORCH_API_USAGE_STDERR, and each event once."""
    if not isinstance(event, str):
        raise TypeError("bad argument type for built-in operation")
    if os.environ.get("PYTORCH_API_USAGE_STDERR") and event not in _logged:
        _logged.add(event)
        print("PYTORCH_API_USAGE", event, file=sys.stderr)
