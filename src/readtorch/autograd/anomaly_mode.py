"""Anomaly mode: backward errors that point at the forward call, and a search for nan.

In PyTorch: `torch/autograd/anomaly_mode.py`. Explained in the chapter "Autograd".
"""

from readtorch.csrc.autograd.node import AnomalyMode


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
    """Inside, nodes record where they are made, and an error in backward shows that traceback in a warning."""

    def __init__(self, check_nan=True):
        self.previous = (AnomalyMode.enabled, AnomalyMode.check_nan)
        self.check_nan = check_nan

    def __enter__(self):
        import warnings

        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )
        self.previous = (AnomalyMode.enabled, AnomalyMode.check_nan)
        AnomalyMode.set_enabled(True, self.check_nan)


def is_anomaly_enabled():
    return AnomalyMode.enabled


def is_anomaly_check_nan_enabled():
    return AnomalyMode.check_nan
