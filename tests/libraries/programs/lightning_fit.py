"""Lightning: fit, validate, test and predict with callbacks, hyperparameters and accumulation; a checkpoint goes on in bfloat16; Fabric"""

import logging
import tempfile

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint, StochasticWeightAveraging
from lightning.pytorch.loggers import CSVLogger
from report import report

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
lightning.seed_everything(0, verbose=False)


class Regression(lightning.LightningModule):
    def __init__(self, lr=0.01):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        self.losses = []

    def training_step(self, batch, index):
        loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.log("train", loss, on_epoch=True, prog_bar=True)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, index):
        self.log("valid", torch.nn.functional.mse_loss(self.net(batch[0]), batch[1]))

    def test_step(self, batch, index):
        self.log("test", torch.nn.functional.l1_loss(self.net(batch[0]), batch[1]))

    def predict_step(self, batch, index):
        return self.net(batch[0])

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), self.hparams.lr)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]


class Data(lightning.LightningDataModule):
    def setup(self, stage):
        x = torch.randn(64, 5, generator=torch.Generator().manual_seed(0))
        self.data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))

    def loader(self, shuffle=False):
        return torch.utils.data.DataLoader(self.data, batch_size=16, shuffle=shuffle)

    def train_dataloader(self):
        return self.loader(True)

    val_dataloader = test_dataloader = predict_dataloader = lambda self: self.loader()


def trainer(**settings):
    quiet = dict(accelerator="cpu", enable_progress_bar=False, enable_model_summary=False)
    return lightning.Trainer(**quiet, **settings)


folder = tempfile.mkdtemp()
model, data, best = Regression(), Data(), ModelCheckpoint(folder, monitor="valid")
callbacks = [best, EarlyStopping("valid"), LearningRateMonitor()]
run = trainer(
    max_epochs=3,
    logger=CSVLogger(folder),
    callbacks=callbacks,
    gradient_clip_val=0.5,
    accumulate_grad_batches=2,
    log_every_n_steps=1,
)
run.fit(model, data)
report("losses", model.losses)
report("metrics", {key: value for key, value in run.callback_metrics.items()})
report("test", run.test(model, data, verbose=False))
report("predictions", torch.cat(run.predict(model, data)))

loaded = Regression.load_from_checkpoint(best.best_model_path)
report("loaded", [loaded.hparams.lr, *loaded.net.parameters()])
again = trainer(max_epochs=4, logger=False, enable_checkpointing=False)
again.fit(loaded, data, ckpt_path=best.best_model_path)
report("goes on", loaded.losses)

averaged = Regression()
trainer(max_epochs=4, logger=False, enable_checkpointing=False, callbacks=[StochasticWeightAveraging(1e-2)]).fit(
    averaged, data
)
report("averaged", list(averaged.net.parameters()))
half = Regression()
trainer(max_epochs=1, logger=False, enable_checkpointing=False, precision="bf16-mixed").fit(half, data)
report("bfloat16 is near", [round(loss, 1) for loss in half.losses[:1]])

fabric = lightning.Fabric(accelerator="cpu", devices=1)
fabric.launch()
layer = torch.nn.Linear(5, 1)
layer, optimizer = fabric.setup(layer, torch.optim.SGD(layer.parameters(), 0.1))
for x, y in fabric.setup_dataloaders(data.loader()):
    loss = torch.nn.functional.mse_loss(layer(x), y)
    fabric.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    report("Fabric", loss)
