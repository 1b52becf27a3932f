"""Threads that use the same graphs, tensors, files and stores at the same time.

    python -m tests.attack.threads --count 40 --report tests/attack/results/threads.json

Nothing may be torn: sums are exact, files are whole, errors are those that PyTorch raises. Each case runs in a process of its own.
"""

import os
import random
import sys
import tempfile
import threading
from datetime import timedelta

import readtorch as rt
from readtorch import distributed as dist
from tests.attack import limits, record

SECONDS = 60


def together(count, function):
    """function(i) in `count` threads that begin at the same time; what they raised."""
    gate, errors = threading.Barrier(count), []

    def run(i):
        gate.wait()
        try:
            function(i)
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def expect(condition, words):
    if not condition:
        raise AssertionError(words)


def backward_into_one_leaf(rng, folder):
    w, n, rounds = rt.zeros(50, requires_grad=True), rng.choice([2, 4, 8]), 30
    errors = together(n, lambda i: [(w * rt.ones(50)).sum().backward() for _ in range(rounds)])
    expect(not errors, errors)
    expect(w.grad.tolist() == [n * rounds] * 50, f"lost gradients: {w.grad[0].item()} of {n * rounds}")


def backward_through_one_graph(rng, folder):
    x = rt.ones(100, requires_grad=True)
    y = (x * 2).exp().sum()
    errors = together(4, lambda i: [rt.autograd.grad(y, x, retain_graph=True)[0].sum().item() for _ in range(20)])
    expect(not errors, errors)


def backward_once_only(rng, folder):
    """Without retain_graph one thread gets the gradient; the others an error, or theirs, but no crash."""
    for _ in range(20):
        x = rt.ones(10, requires_grad=True)
        y = (x * x).sum()
        errors = together(4, lambda i: y.backward())
        expect(all("second time" in e or "freed" in e for e in errors), errors)


def training_apart(rng, folder):
    seen = {}

    def train(i):
        generator = rt.Generator()
        generator.manual_seed(i % 2)
        w = rt.randn(5, generator=generator).requires_grad_()
        optimizer = rt.optim.SGD([w], lr=0.1)
        for _ in range(30):
            optimizer.zero_grad()
            (w**2).sum().backward()
            optimizer.step()
        seen[i] = w.tolist()

    errors = together(6, train)
    expect(not errors, errors)
    expect(all(seen[i] == seen[i % 2] for i in range(6)), "threads disturbed each other's training")


def saves_to_one_path(rng, folder):
    path = folder + "/model.pt"
    rt.save(rt.full((1000,), 0), path)

    def work(i):
        for _ in range(15):
            if i % 2:
                rt.save(rt.full((1000,), i), path)
            else:
                loaded = rt.load(path)
                expect(loaded.min() == loaded.max() and loaded.shape == (1000,), "a torn file")

    errors = together(6, work)
    expect(not errors, errors)
    expect(os.listdir(folder) == ["model.pt"], os.listdir(folder))


def saves_while_training(rng, folder):
    w, over = rt.zeros(100_000), threading.Event()

    def work(i):
        if i == 0:
            for _ in range(200):
                with rt.no_grad():
                    w.add_(1)
            over.set()
        while not over.is_set():
            rt.save(w, f"{folder}/{i}.pt")
            expect(rt.load(f"{folder}/{i}.pt").shape == (100_000,), "a torn file")

    errors = together(3, work)
    expect(not errors and w.min() == w.max() == 200, errors)


def grad_mode_is_each_threads_own(rng, folder):
    def work(i):
        for _ in range(50):
            with rt.set_grad_enabled(bool(i % 2)):
                expect((rt.ones(2, requires_grad=True) * 2).requires_grad == bool(i % 2), "another thread's grad mode")

    expect(not (errors := together(8, work)), errors)


def hooks_come_and_go(rng, folder):
    x = rt.ones(10, requires_grad=True)

    def work(i):
        for _ in range(30):
            handle = x.register_hook(lambda g: g)
            (x * 2).sum().backward()
            handle.remove()

    expect(not (errors := together(4, work)), errors)


def one_store_many_threads(rng, folder):
    store = dist.TCPStore("127.0.0.1", 0, 1, True, timeout=timedelta(seconds=20))

    def work(i):
        mine = store if i % 2 else store.clone()
        for number in range(40):
            mine.add("n", 1)
            mine.set(f"k{i}", str(number))
            expect(mine.get(f"k{i}") == str(number).encode(), "another thread's answer")

    expect(not (errors := together(8, work)), errors)
    expect(store.add("n", 0) == 320, "lost additions")


def loaders_at_once(rng, folder):
    def work(i):
        loader = rt.utils.data.DataLoader(list(range(20)), num_workers=1, batch_size=4)
        expect([x for batch in loader for x in batch.tolist()] == list(range(20)), "wrong data")

    expect(not (errors := together(3, work)), errors)


def shared_views_in_place(rng, folder):
    """Writers of different rows: nobody's row may be another's."""
    x = rt.zeros(8, 1000)

    def work(i):
        for _ in range(100):
            x[i].add_(1)

    expect(not (errors := together(8, work)), errors)
    expect(x.min() == x.max() == 100, "lost additions")


KINDS = [
    backward_into_one_leaf,
    backward_through_one_graph,
    backward_once_only,
    training_apart,
    saves_to_one_path,
    saves_while_training,
    grad_mode_is_each_threads_own,
    hooks_come_and_go,
    one_store_many_threads,
    loaders_at_once,
    shared_views_in_place,
]


def one(seed, number):
    with tempfile.TemporaryDirectory() as folder:
        sys.setswitchinterval(1e-5)
        try:
            KINDS[number % len(KINDS)](random.Random(f"{seed} {number}"), folder)
        except Exception as error:
            return f"BAD {type(error).__name__}: {error}"
    return "whole"


def attack(seed, number):
    name = KINDS[number % len(KINDS)].__name__.replace("_", " ")
    end = limits.alone(lambda: one(seed, number), seconds=SECONDS)
    outcome = end.get("result", f"BAD {end}")
    return f"BAD {name}: {outcome}" if outcome.startswith("BAD") else name


if __name__ == "__main__":
    sys.exit(record.main(__doc__, attack, 44))
