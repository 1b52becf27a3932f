"""Answers about profiles."""

import time

import pytest
import torch
from torch import nn
from torch.profiler import profile, record_function, schedule
from torch.utils.flop_counter import FlopCounterMode


def sums(prof):
    return {row.key: row for row in prof.key_averages()}


def test_how_do_i_find_out_what_is_slow_in_my_model():
    x = torch.randn(400, 400)
    with profile() as prof:
        with record_function("cheap"):
            x + x
        with record_function("dear"):
            for _ in range(20):
                x @ x
    rows = sums(prof)
    assert max(rows.values(), key=lambda row: row.self_cpu_time_total).key == "aten::mm"
    assert rows["dear"].cpu_time_total > rows["cheap"].cpu_time_total


def test_what_is_the_difference_between_self_cpu_and_cpu_total():
    with profile() as prof, record_function("block"):
        time.sleep(0.01)
        torch.ones(3) * 2
    rows = sums(prof)
    block, inside = rows["block"], [e for e in prof.events() if e.cpu_parent and e.cpu_parent.name == "block"]
    assert block.self_cpu_time_total == pytest.approx(block.cpu_time_total - sum(e.cpu_time_total for e in inside))
    assert sum(row.self_cpu_time_total for row in rows.values()) == pytest.approx(block.cpu_time_total)
    assert sum(row.cpu_time_total for row in rows.values()) > block.cpu_time_total


def test_why_is_my_profile_empty():
    def traced(wait, steps):
        traces = []
        plan = schedule(wait=wait, warmup=1, active=1)
        with profile(schedule=plan, on_trace_ready=lambda prof: traces.append(len(prof.events()))) as prof:
            for _ in range(4):
                torch.ones(3)
                if steps:
                    prof.step()
        return traces, prof

    traces, prof = traced(wait=1, steps=False)
    assert traces == []
    with pytest.raises(AssertionError, match="must be initialized"):
        prof.key_averages()
    traces, prof = traced(wait=0, steps=False)
    assert traces == [] and not prof.events()
    traces, prof = traced(wait=0, steps=True)
    assert min(traces) > 1 and not prof.events(), "the cycle that has only warmed up"


def test_how_many_flops_does_my_model_need():
    net = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 2))
    with FlopCounterMode(display=False) as counter:
        net(torch.randn(4, 8)).sum().backward()
    forward = 2 * 4 * (8 * 16 + 16 * 2)
    backward = 2 * forward - 2 * 4 * 8 * 16
    assert counter.get_total_flops() == forward + backward
    assert counter.get_flop_counts()["Sequential.0"][torch.ops.aten.addmm] == 2 * 4 * 8 * 16
