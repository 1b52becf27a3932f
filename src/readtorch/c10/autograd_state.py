"""What a thread has decided about backward, besides whether operations are recorded.

In PyTorch: `c10/core/AutogradState.h`. Explained in the chapter "Autograd".
"""

import threading


class AutogradState(threading.local):
    """One object; each thread has its own values."""

    multithreading_enabled = True  # may backward use a thread for each device?
    view_replay_enabled = (
        False  # is a view of a base that was written to always made again by the operators that made it?
    )
    grad_layout_enforcement_enabled = True  # must a leaf's first gradient be laid out as the leaf is?


autograd_state = AutogradState()
