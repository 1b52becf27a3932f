"""Written in the chapter "Dataset, Sampler, DataLoader": its cells are this file, put together by `tools/mini.py`."""

import itertools
import multiprocessing

from .random import Generator, default_generator, randperm


def draw_seed(g=default_generator):
    """`torch.empty((), dtype=torch.int64).random_()`"""
    return (g.random() << 32 | g.random()) % 2**63


def shuffled(n):
    return randperm(n, Generator().manual_seed(draw_seed()))


def batches_of(order, size):
    return [order[i:i + size] for i in range(0, len(order), size)]


def fetch(dataset, indices):
    samples = [dataset[index] for index in indices]
    return [list(column) for column in zip(*samples)]  # collate


def load(dataset, batch_size):
    draw_seed()  # the base seed, although there are no workers
    for indices in batches_of(shuffled(len(dataset)), batch_size):
        yield fetch(dataset, indices)


def work(dataset, orders, results):
    for number, worker, indices in iter(orders.get, None):
        results.put((number, worker, fetch(dataset, indices)))
    results.cancel_join_thread()  # what nobody reads may be lost


class Workers:
    def __init__(self, dataset, count):
        fork = multiprocessing.get_context("fork")
        self.results = fork.Queue()
        self.orders = [fork.Queue() for _ in range(count)]
        self.processes = [
            fork.Process(target=work, daemon=True,
                         args=(dataset, orders, self.results))
            for orders in self.orders]
        for process in self.processes:
            process.start()

    def end(self):
        for orders in self.orders:
            orders.put(None)
        for process in self.processes:
            process.join()


def load_ahead(dataset, batches, count=2, prefetch=2,
               in_order=True):
    workers = Workers(dataset, count)
    unsent = enumerate(batches)
    turns = itertools.cycle(range(count))
    owes = [0] * count  # batches that each has not given back

    def send():
        for number, indices in itertools.islice(unsent, 1):
            worker = next(turns)
            while not in_order and owes[worker] >= prefetch:
                worker = next(turns)  # that one has enough to do
            owes[worker] += 1
            workers.orders[worker].put((number, worker, indices))

    for _ in range(prefetch * count):
        send()
    arrived = {}
    try:
        for wanted in range(len(batches)):
            while wanted not in arrived:
                number, worker, data = workers.results.get()
                owes[worker] -= 1
                arrived[number if in_order else wanted] = data
            send()
            yield arrived.pop(wanted)
    finally:
        workers.end()
