"""Pipelines: a model cut into stages, each on its rank, and batches cut into pieces that follow one another.

In PyTorch: `torch/distributed/pipelining/__init__.py`. Left out: the frontend that cuts a model by tracing it (`pipeline`,
`SplitPoint`), schedules with several stages a rank, and those that split the backward pass.
"""

from .schedules import Schedule1F1B, ScheduleGPipe
from .stage import PipelineStage

__all__ = ["PipelineStage", "Schedule1F1B", "ScheduleGPipe"]
