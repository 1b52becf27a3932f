"""Event files for TensorBoard: scalars, histograms, images and graphs of a training run.

In PyTorch: `torch/utils/tensorboard/__init__.py`. Explained in the chapter "Multiprocessing and TensorBoard".

    writer.py            SummaryWriter: one method for each kind of event; FileWriter: one file
    summary.py           from values to protocol buffers: scalars, histograms, texts, curves, meshes, images, sounds,
                         hyperparameters
    _pytorch_graph.py    … a module's trace
    _embedding.py        what the projector reads, which are files of their own

The package `tensorboard` has the protocol buffers and the writer of records. Without it, importing this
raises ModuleNotFoundError.
"""

from readtorch.c10.extras import extra

with extra("tensorboard", "SummaryWriter"):
    import tensorboard

if int(getattr(tensorboard, "__version__", "0").split(".")[0]) < 2:  # in PyTorch: less than 1.15
    raise ImportError("TensorBoard logging requires TensorBoard version 1.15 or above")

from tensorboard.summary.writer.record_writer import RecordWriter

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
