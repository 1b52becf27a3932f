"""Anomaly mode: backward errors that point at the forward call, and a search for nan.

In PyTorch: `torch/autograd/anomaly_mode.py`. Explained in the chapter "Autograd".
"""

import warnings

from readtorch.csrc.autograd.node import AnomalyMode

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Switch anomaly mode on or off by a flag; as a context manager it puts the old mode back."""

    def __init__(self, mode, check_nan=True):
        self.previous = (AnomalyMode.enabled, AnomalyMode.check_nan)
        AnomalyMode.set_enabled(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        AnomalyMode.set_enabled(*self.previous)


class detect_anomaly(set_detect_anomaly):
    """Inside, nodes record where they are made, and an error in backward shows that traceback in a warning.

    check_nan: a nan that a node makes is an error.
    """

    def __init__(self, check_nan=True):
        self.previous = (AnomalyMode.enabled, AnomalyMode.check_nan)
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self):
        AnomalyMode.set_enabled(True, self.check_nan)


def is_anomaly_enabled():
    return AnomalyMode.enabled


def is_anomaly_check_nan_enabled():
    return AnomalyMode.check_nan
