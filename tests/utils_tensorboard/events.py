"""Run one program with both SummaryWriters and compare all that TensorBoard's reader finds in their files."""

import warnings
from pathlib import Path

import torch
import torch.utils.tensorboard
from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

import readtorch
import readtorch.jit
import readtorch.utils.tensorboard


def same_events(program, directory):
    """program(T, writer): what it writes with T and T's writer. Returns the events, run -> list of Event."""
    theirs, ours = written(program, torch, directory), written(program, readtorch, directory)
    assert list(ours) == list(theirs)
    for run, expected in theirs.items():
        assert len(ours[run]) == len(expected)
        for event, other in zip(ours[run], expected):
            assert str(event) == str(other)
            assert event == other
    return ours


def written(program, T, directory):
    log_dir = Path(directory, T.__name__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of torch.jit.trace
        with T.utils.tensorboard.SummaryWriter(log_dir) as writer:
            program(T, writer)
    return events_in(log_dir)


def events_in(log_dir):
    """run -> its events, times aside."""
    found = {}
    for file in sorted(Path(log_dir).rglob("events.out.tfevents.*")):
        events = list(LegacyEventFileLoader(str(file)).Load())
        for event in events:
            assert event.wall_time > 0
            event.wall_time = 0
        found.setdefault(str(file.parent.relative_to(log_dir)), []).extend(events)
    return found
