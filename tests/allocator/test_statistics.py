"""What is counted on a device: every quantity against a plain count of its own, through resets."""

import random

import pytest

from readtorch.c10 import caching_device_allocator as statistics


class Plain:
    """A quantity as the documentation has it: four numbers."""

    def __init__(self):
        self.current = self.peak = self.allocated = self.freed = 0

    def change(self, amount):
        self.current += amount
        self.peak = max(self.peak, self.current)
        if amount >= 0:
            self.allocated += amount
        else:
            self.freed -= amount

    def reset_accumulated(self):
        self.allocated = self.freed = 0

    def reset_peak(self):
        self.peak = self.current


@pytest.mark.parametrize("seed", range(10))
def test_every_quantity_is_counted_by_kind_and_together(seed):
    chance = random.Random(seed)
    counted = statistics.AllStat()
    plain = {name: Plain() for name in ("all", "small_pool", "large_pool")}
    for _ in range(200):
        act = chance.random()
        if act < 0.04:
            counted.reset_peak()
            for quantity in plain.values():
                quantity.reset_peak()
        elif act < 0.08:
            counted.reset_accumulated()
            for quantity in plain.values():
                quantity.reset_accumulated()
        else:
            kind, amount = chance.choice(("small_pool", "large_pool")), chance.randint(1, 9)
            stat = getattr(counted, kind)
            if act < 0.55:
                stat.increase(amount)
            elif act < 0.8 and stat.current >= amount:
                stat.decrease(amount)
                amount = -amount
            elif stat.current >= amount:
                amount = chance.choice((amount, -amount))
                stat.change(amount)
            else:
                continue
            plain[kind].change(amount)
            plain["all"].change(amount)
        assert counted.as_dict() == {name: vars(quantity) for name, quantity in plain.items()}


COUNTS = (
    "num_alloc_retries",
    "num_ooms",
    "num_sync_all_streams",
    "num_device_alloc",
    "num_device_free",
    "num_oom_rejections",
)


def test_a_device_s_statistics_are_reset_all_of_them():
    device = statistics.DeviceStats(1 << 30)
    assert statistics.DeviceStats(1 << 63).max_split_size == -1 and device.max_split_size == 1 << 30

    class Pool:
        id, is_small = (0, 7), True

    quantities = {**device.families, "private": None}
    for i, name in enumerate(COUNTS):
        assert getattr(device, name) == 0
        setattr(device, name, i + 1)
    device.of_private_pool(Pool).increase(5)
    Pool.is_small = False
    device.of_private_pool(Pool).increase(6)
    for family in device.families:
        getattr(device.small_pool, family).increase(3)
        getattr(device.large_pool, family).increase(4)
        getattr(device.large_pool, family).decrease(1)
    for stat in (device.oversize_allocations, device.oversize_segments):
        stat.increase(2)
        stat.decrease(1)
    nested = device.as_nested_dict()
    assert [nested[name] for name in COUNTS] == [1, 2, 3, 4, 5, 6] and len(nested) == len(COUNTS) + 1 + len(
        quantities
    ) + 2
    everything = {"current": 6, "peak": 7, "allocated": 7, "freed": 1}
    assert all(nested[family]["all"] == everything for family in device.families)
    assert nested["reserved_bytes_by_private_pools"][0, 7]["all"] == {
        "current": 11,
        "peak": 11,
        "allocated": 11,
        "freed": 0,
    }
    device.reset_peak()
    device.reset_accumulated()
    nested = device.as_nested_dict()
    assert [nested[name] for name in COUNTS] == [0] * 6
    for family in device.families:
        assert nested[family]["all"] == {"current": 6, "peak": 6, "allocated": 0, "freed": 0}
        assert nested[family]["large_pool"]["peak"] == nested[family]["small_pool"]["peak"] == 3
    assert (
        nested["oversize_allocations"]
        == nested["oversize_segments"]
        == {"current": 1, "peak": 1, "allocated": 0, "freed": 0}
    )
    assert nested["reserved_bytes_by_private_pools"][0, 7]["all"]["allocated"] == 0
