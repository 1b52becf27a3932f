"""What `load` says when it refuses.

In PyTorch: `UNSAFE_MESSAGE` and `_get_wo_message` of `torch/serialization.py`.
"""

import re


class SourceChangeWarning(Warning):
    """That a saved class's source has changed since; only the formats of before PyTorch 1.6 keep the source."""


UNSAFE_MESSAGE = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` "
    "from `False` to `True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, "
    "but it can result in arbitrary code execution. Do it only if you got the file from a "
    "trusted source."
)
_DOCS = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with "
    "weights_only https://pytorch.org/docs/stable/generated/torch.load.html."
)


def weights_only_message(message):
    """What to do about a refusal of the unpickler."""
    if re.search(r"GLOBAL (\S+) was not an allowed global by default.", message):
        text = (
            "Weights only load failed. This file can still be loaded, to do so you have two options, "
            "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. "
            f"\n\t(1) {UNSAFE_MESSAGE}\n\t(2) Alternatively, to load with `weights_only=True` please "
            "check "
            "the recommended steps in the following error message.\n\tWeightsUnpickler error: " + message
        )
    elif re.search(r"whose module (\S+) is blocked", message):
        text = f"Weights only load failed. {UNSAFE_MESSAGE}\n\n\n{message}"
    elif re.search(r"(\S+) must be (\S+) to load", message):
        return f"Weights only load failed. {message}\n {UNSAFE_MESSAGE}\n"
    else:
        text = (
            f"Weights only load failed. {UNSAFE_MESSAGE}\n"
            "Please file an issue with the following so that we can make "
            f"`weights_only=True` compatible with your use case: WeightsUnpickler error: \n\n{message}"
        )
    return text + _DOCS
