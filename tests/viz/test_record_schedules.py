"""What the schedule plotter draws is what a training sees: rates and momenta of schedulers that really run."""

import json

import pytest
import torch

import readtorch
from readtorch import viz
from readtorch.viz.record_schedules import record_schedules

LIBRARIES = pytest.mark.parametrize("T", [torch, readtorch], ids=["torch", "readtorch"])


def new_optimizer(T):
    return lambda: T.optim.SGD([T.nn.Parameter(T.ones(1))], lr=0.1, momentum=0.9)


@LIBRARIES
def test_curves_of_either_library(T):
    L = T.optim.lr_scheduler
    recorded = record_schedules(
        {
            "steps": lambda o: L.StepLR(o, 2, 0.5),
            "one hill": lambda o: L.OneCycleLR(o, 0.5, 6, pct_start=0.5, anneal_strategy="linear"),
        },
        6,
        new_optimizer(T),
    )
    steps, hill = recorded["curves"]
    assert recorded["epochs"] == 6 and json.loads(json.dumps(recorded)) == recorded
    assert (steps["label"], steps["scheduler"], steps["momenta"]) == ("steps", "StepLR", [])
    assert steps["rates"] == [0.1, 0.1, 0.05, 0.05, 0.025, 0.025]
    assert hill["rates"] == [0.02, 0.26, 0.5, 0.333334, 0.166668, 2e-06]
    assert hill["momenta"] == [0.95, 0.9, 0.85, 0.883333, 0.916667, 0.95]


def test_both_libraries_draw_the_same():
    curves = []
    for T in (torch, readtorch):
        L = T.optim.lr_scheduler
        recorded = record_schedules(
            [
                ("chained", lambda o: L.ChainedScheduler([L.LinearLR(o), L.ExponentialLR(o, 0.97)])),
                ("restarts", lambda o: L.CosineAnnealingWarmRestarts(o, 5, 2)),
                ("swa", lambda o: T.optim.swa_utils.SWALR(o, 0.01)),
            ],
            50,
            new_optimizer(T),
        )
        curves.append([(c["label"], c["rates"]) for c in recorded["curves"]])
    assert curves[0] == curves[1]


def test_adam_and_the_formula_from_the_docstring():
    optimizer = lambda: readtorch.optim.Adam([readtorch.nn.Parameter(readtorch.ones(1))], lr=0.1)
    (curve,) = record_schedules({"c": lambda o: readtorch.optim.lr_scheduler.CyclicLR(o, 0.1, 0.2, 2)}, 5, optimizer)[
        "curves"
    ]
    assert curve["momenta"] == [0.9, 0.85, 0.8, 0.85, 0.9]
    assert curve["about"].startswith("η = base_lr + h s (max_lr - base_lr)")


def test_plateau_needs_a_measure():
    schedules = {"p": lambda o: readtorch.optim.lr_scheduler.ReduceLROnPlateau(o, factor=0.5, patience=1)}
    with pytest.raises(TypeError, match="give measure"):
        record_schedules(schedules)
    (curve,) = record_schedules(schedules, 7, measure=lambda epoch: 1.0)["curves"]
    assert curve["rates"] == [0.1, 0.1, 0.1, 0.05, 0.05, 0.025, 0.025]


def test_what_is_not_finite_is_left_out():
    schedules = {"up": lambda o: readtorch.optim.lr_scheduler.LambdaLR(o, lambda t: 10.0 if t < 2 else float("inf"))}
    (curve,) = record_schedules(schedules, 4)["curves"]
    assert curve["rates"] == [1.0, 1.0, None, None]


def test_too_many_and_not_callable():
    constant = lambda o: readtorch.optim.lr_scheduler.ExponentialLR(o, 1)
    with pytest.raises(ValueError, match="at most 10"):
        record_schedules([(str(i), constant) for i in range(11)])
    for epochs in (1, 1001):
        with pytest.raises(ValueError, match="2 to 1000"):
            record_schedules({"c": constant}, epochs)
    for bad in ({}, {"c": 3}, [("a", "b", "c")]):
        with pytest.raises(TypeError, match="expected a dict"):
            record_schedules(bad)


def test_the_figure_carries_the_curves():
    figure = viz.schedule_plotter({"e": lambda o: readtorch.optim.lr_scheduler.ExponentialLR(o, 0.5)}, 3, scale="log")
    assert figure.data["curves"][0]["rates"] == [0.1, 0.05, 0.025]
    assert (figure.scale, figure.quantity, figure.epoch, figure.hidden) == ("log", "rate", 0, [])
    assert "0.025" in figure.static_html()
