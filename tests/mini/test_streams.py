"""mini's streams, events and graphs tell the times of readtorch's simulated device."""

import random

from readtorch.c10.cuda.simulated_streams import Latencies, SimulatedStreams
from readtorch.mini.streams import Device, Event, Graph, Stream


def test_random_programs_on_two_streams():
    for seed in range(50):
        choose = random.Random(seed)
        mine, other = Device(launch=3.0), Stream()
        theirs = SimulatedStreams(1, Latencies(launch=3.0))
        side = theirs.create(0, 0)
        for _ in range(30):
            what, here = choose.choice(["launch", "launch", "wait", "synchronize"]), choose.random() < 0.5
            stream, handle = (other, side) if here else (mine.main, 0)
            if what == "launch":
                takes = choose.choice([1.0, 5.0, 20.0])
                mine.launch(lambda: None, takes, stream)
                theirs.enqueue(0, handle, lambda: None, takes)
            elif what == "wait":
                event, mark = Event(), theirs.create_event(0, True)
                event.record(mine, stream)
                theirs.record(mark, 0, handle)
                event.wait(mine.main if here else other)
                theirs.wait_event(0, 0 if here else side, mark)
            else:
                mine.synchronize(stream)
                theirs.synchronize(0, handle)
            assert mine.now == theirs.now
        mine.synchronize(other)
        mine.synchronize()
        theirs.synchronize_device(0)
        assert mine.now == theirs.now


def test_a_replay_does_all_for_one_launch():
    done, gpu, graph = [], Device(launch=5.0), Graph()
    graph.capture(gpu, lambda: [gpu.launch(lambda k=k: done.append(k), 2.0) for k in range(4)])
    assert done == [] and len(graph.nodes) == 4
    before = gpu.now
    graph.replay(gpu)
    assert done == [0, 1, 2, 3] and gpu.now == before + 5.0 and gpu.main.free_at == gpu.now + 8.0
