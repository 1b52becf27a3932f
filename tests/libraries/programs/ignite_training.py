"""ignite: training with handlers, metrics, a schedule, an average of the weights and checkpoints"""

import tempfile

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping, EMAHandler, ModelCheckpoint, PiecewiseLinear, TerminateOnNan
from ignite.metrics import Accuracy, ConfusionMatrix, Loss, Precision, Recall, RunningAverage
from report import report

torch.manual_seed(0)
x = torch.randn(64, 5)
y = (x.sum(1) > 0).long()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 16, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
loss = torch.nn.CrossEntropyLoss()

trainer = create_supervised_trainer(model, optimizer, loss)
RunningAverage(output_transform=lambda value: value).attach(trainer, "loss")
metrics = {"accuracy": Accuracy(), "loss": Loss(loss), "precision": Precision(), "recall": Recall()}
evaluator = create_supervised_evaluator(model, metrics | {"confusion": ConfusionMatrix(2)})
averaged = EMAHandler(model, 0.1)
averaged.attach(trainer)
checkpoint = ModelCheckpoint(tempfile.mkdtemp(), "model", n_saved=1)
stopping = EarlyStopping(2, lambda engine: engine.state.metrics["accuracy"], trainer)
trainer.add_event_handler(Events.ITERATION_STARTED, PiecewiseLinear(optimizer, "lr", [(0, 0.1), (8, 0.01)]))
trainer.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())
trainer.add_event_handler(Events.EPOCH_COMPLETED, checkpoint, {"model": model})
evaluator.add_event_handler(Events.COMPLETED, stopping)


@trainer.on(Events.EPOCH_COMPLETED)
def evaluate(engine):
    evaluator.run(loader)
    report(f"epoch {engine.state.epoch}", evaluator.state.metrics)
    report("running loss", engine.state.metrics["loss"])
    report("rate", optimizer.param_groups[0]["lr"])


trainer.run(loader, max_epochs=4)
report("averaged", [p for p in averaged.ema_model.parameters()])
report("saved", torch.load(checkpoint.last_checkpoint))
