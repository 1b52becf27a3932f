"""Twenty steps from one seed: the loss of every step is the reference's.

Note [How far the reference stays with itself]
A ResNet multiplies differences: multiply its first weight by 1 + 1e-7, which changes no more than roundings,
and at a learning rate of 0.02 PyTorch's own losses are 5e-2 apart after twenty steps. (Gradients are large,
and a ReLU that flips changes them a little more.) So the ResNet is held to 1e-4 in float32 with small steps,
and with large ones in float64, where the roundings are 1e-9 of that.
"""

import pytest
import torch

import readtorch
from tests.training import models, tasks

STEPS = 20


def sgd(T, model):
    return T.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)


def small_steps(T, model):
    return T.optim.SGD(model.parameters(), lr=5e-5, momentum=0.9, weight_decay=5e-4)


def adamw(T, model):
    return T.optim.AdamW(model.parameters(), lr=1e-3)


# name -> (network, optimizer, batch, loss)
RUNS = {
    "MLP": (lambda T: models.mlp(T), sgd, lambda T: tasks.vectors(T, 16), tasks.classification_loss),
    "MNIST CNN": (
        lambda T: models.mnist_cnn(T, channels=8),
        sgd,
        lambda T: tasks.images(T, 4, channels=1, size=28),
        tasks.classification_loss,
    ),
    # See Note [How far the reference stays with itself].
    "ResNet-18": (
        lambda T: models.resnet18(T, width=16),
        small_steps,
        lambda T: tasks.images(T, 8),
        tasks.classification_loss,
    ),
    "VGG": (lambda T: models.vgg(T), sgd, lambda T: tasks.images(T, 4), tasks.classification_loss),
    "MobileNet": (
        lambda T: models.mobilenet(T, width=16),
        sgd,
        lambda T: tasks.images(T, 4),
        tasks.classification_loss,
    ),
    "LSTM language model": (
        lambda T: models.lstm_language_model(T, layers=2, dropout=0.1),
        adamw,
        lambda T: tasks.texts(T, 4, context=16, vocabulary=100),
        tasks.language_loss,
    ),
    "GPT": (lambda T: models.gpt(T, dropout=0.1), adamw, lambda T: tasks.texts(T, 2), tasks.language_loss),
    "VAE": (lambda T: models.vae(T), adamw, lambda T: tasks.pictures_of_points(T, 16), tasks.vae_loss),
}


def losses(T, network, optimizer, batch, loss):
    T.manual_seed(0)
    model = network(T)
    optimizer = optimizer(T, model)
    batches = [batch(T), batch(T)]
    return [step(T, model, optimizer, batches[i % 2], loss) for i in range(STEPS)]


def step(T, model, optimizer, batch, loss):
    optimizer.zero_grad()
    value = loss(T, model, *batch)
    value.backward()
    optimizer.step()
    return value.item()


@pytest.mark.parametrize("name", RUNS)
def test_losses_stay_together(name):
    theirs, ours = (losses(T, *RUNS[name]) for T in (torch, readtorch))
    assert theirs[-1] < theirs[0] and theirs[-2] < theirs[1], "nothing is learned"
    assert ours == pytest.approx(theirs, rel=1e-4)


def test_resnet_in_float64_with_large_steps():
    """Note [How far the reference stays with itself]."""

    def batch(T):
        x, labels = tasks.images(T, 4)
        return x.double(), labels

    def network(T):
        return models.resnet18(T, width=8).double()

    theirs, ours = (losses(T, network, sgd, batch, tasks.classification_loss) for T in (torch, readtorch))
    assert theirs[-1] < theirs[0] / 10, "nothing is learned"
    assert ours == pytest.approx(theirs, rel=1e-4)
