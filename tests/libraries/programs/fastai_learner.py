"""fastai: a learner with metrics, one cycle, schedules, callbacks and predictions"""

import torch
from fastai.callback.schedule import fit_one_cycle  # noqa: F401  (it becomes a method of Learner)
from fastai.callback.training import GradientAccumulation, GradientClip
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.learner import Learner
from fastai.losses import CrossEntropyLossFlat
from fastai.metrics import accuracy
from fastai.torch_core import TensorBase, set_seed
from report import report

set_seed(0)
x = torch.randn(96, 5)
y = (x.sum(1) > 0).long()
data = [(a, b) for a, b in zip(x, y)]
loaders = DataLoaders(DataLoader(data[:64], bs=16, shuffle=True), DataLoader(data[64:], bs=16))
model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
callbacks = [GradientClip(1.0), GradientAccumulation(32)]
learner = Learner(loaders, model, loss_func=CrossEntropyLossFlat(), metrics=accuracy, cbs=callbacks)
with learner.no_bar(), learner.no_logging():
    learner.fit_one_cycle(3, 0.01)
    learner.fit(1, 0.01)
report("losses", [float(loss) for loss in learner.recorder.losses])
report("rows", [[float(value) for value in row] for row in learner.recorder.values])
report("rates", learner.recorder.lrs)
predictions, targets = learner.get_preds()
report("predictions", predictions.as_subclass(torch.Tensor))
report("kind", type(TensorBase(torch.ones(2)) + 1).__name__)
