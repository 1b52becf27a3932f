"""A share of `tests.serialization.random_state_dicts`: both formats, both ways, to the CPU, the Meta device and simulated GPUs."""

from tests.serialization import random_state_dicts


def test_twenty_random_state_dicts():
    done, failures = random_state_dicts.run(1000, 20)
    assert failures == []
    assert min(done.values()) >= 10 and len(done) == 19  # every way was gone


def test_a_difference_is_seen(monkeypatch):
    spoiled = random_state_dicts.describe
    seen = []

    def describe(value):
        seen.append(value)
        return spoiled(value) if len(seen) != 5 else None

    monkeypatch.setattr(random_state_dicts, "describe", describe)
    assert random_state_dicts.run(0, 1)[1]
