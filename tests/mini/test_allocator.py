"""`mini.allocator`: every address that PyTorch's allocator answered in recorded runs, and what streams may not see."""

import random

import pytest

from readtorch.mini.allocator import Allocator, Device
from tests.allocator import replay
from tests.allocator.test_traces import TRACES

LEFT_OUT = ("pool", "set", "mem_get")  # operations on what mini has not


def fits_mini(run):
    """Default settings, one device, addresses that ascend."""
    plain = run["alloc_conf"], run["devices"], run["addresses"]
    return plain == ("", 1, "up") and not any(op[0].startswith(LEFT_OUT) for op in run["ops"])


class Follower:
    """A recorded run, done again."""

    def __init__(self, run):
        self.device = Device(run["capacity"])
        self.allocator = Allocator(self.device)
        self.blocks = {}

    def alloc(self, name, size, stream, _):
        if size == 0:
            return 0  # nothing is asked for
        try:
            block = self.blocks[name] = self.allocator.malloc(size, stream)
        except MemoryError:
            return None
        return block.address

    def free(self, name):
        if name in self.blocks:
            self.allocator.free(self.blocks.pop(name))

    def record_stream(self, name, stream):
        if name in self.blocks:
            self.allocator.record_stream(self.blocks[name], stream)

    def complete_events(self, _=0, stream=None, count=0):
        for queue in self.device.queues.values() if stream is None else [self.device.queues[stream]]:
            for _ in range(min(count or len(queue), len(queue))):
                queue.popleft()()

    def empty_cache(self):
        self.allocator.release_cached()

    def reset_peak_stats(self, _):
        """It counts nothing."""

    reset_accumulated_stats = reset_peak_stats


FOLLOWED = [path for path in TRACES if fits_mini(replay.load(path))]


def test_many_runs_fit():
    assert len(FOLLOWED) >= 17


@pytest.mark.parametrize("path", FOLLOWED, ids=lambda path: path.name.split(".")[0])
def test_addresses_are_pytorchs(path):
    run = replay.load(path)
    follower = Follower(run)
    for i, (op, expected) in enumerate(zip(run["ops"], run["results"])):
        answer = getattr(follower, op[0])(*op[1:])
        if op[0] == "alloc":
            assert answer == expected.get("ptr"), (i, op)


@pytest.mark.parametrize("seed", range(20))
def test_nobody_writes_where_a_stream_still_reads(seed):
    """Readers on other streams, in any order of the streams, see what was written for them."""
    draw = random.Random(seed)
    device, memory, there, wrong = Device(30 << 20), {}, [], []
    allocator = Allocator(device)

    def read(place, expected):
        if memory[place] != expected:
            wrong.append(place)

    for number in range(200):
        match draw.choice(["make", "make", "read", "drop", "run"]):
            case "make":
                block = allocator.malloc(draw.choice([512, 4096, 1 << 20]))
                memory[block.address] = number
                there.append((block, number))
            case "read" if there:
                (block, expected), stream = draw.choice(there), draw.randrange(1, 4)
                device.launch(stream, lambda place=block.address, expected=expected: read(place, expected))
                allocator.record_stream(block, stream)
            case "drop" if there:
                allocator.free(there.pop(draw.randrange(len(there)))[0])
            case "run":
                device.run(draw.randrange(1, 4))
    for stream in range(1, 4):
        device.run(stream)
    assert wrong == []
