"""An epoch of a DataLoader in virtual time: who fetches which batch, and what the training waits for (the chapter
"Dataset, Sampler, DataLoader").

The rules are those of `_MultiProcessingDataLoaderIter`: how many indices are sent ahead, to whom, and which batch is handed over.
In PyTorch: `torch/utils/data/dataloader.py`. `tests/viz/test_loader_epoch.py` lets PyTorch's loader run and compares.
"""

import heapq

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Integer, Number, Switch
from readtorch.viz.picture import lanes

MOST_WORKERS = 6


class Epoch:
    """What happens, as intervals (start, end, batch) of the main process and of each worker; times in milliseconds."""

    def __init__(self, inputs):
        self.inputs = inputs
        self.now = 0.0
        self.fetches = [[] for _ in range(inputs["workers"])]
        self.works, self.waits = [], []
        self.arrivals = []  # a heap of (time, task)
        self.worker_of, self.arrived = {}, {}
        self.sent = self.received = 0
        self.owes = [0] * inputs["workers"]  # batches that each has not given back
        self.turn = 0
        self.most_ready = 0

    def fetch_time(self, batch):
        slow = self.inputs["every"]
        return self.inputs["slow"] if slow and batch % slow == 0 else self.inputs["fetch"]

    def run(self):
        if not self.fetches:
            return self.run_alone()
        for _ in range(self.inputs["prefetch"] * len(self.fetches)):
            self.send()
        for _ in range(self.inputs["batches"]):
            self.work(self.next_batch())
        return self

    def run_alone(self):
        for batch in range(self.inputs["batches"]):
            start, self.now = self.now, self.now + self.fetch_time(batch)
            self.waits.append((start, self.now, batch))
            self.work(batch)
        return self

    def work(self, batch):
        start, self.now = self.now, self.now + self.inputs["work"]
        self.works.append((start, self.now, batch))

    def send(self):
        """Indices for the next batch: in PyTorch `_try_put_index`."""
        if self.sent == self.inputs["batches"]:
            return
        task, worker = self.sent, self.next_worker()
        done = self.fetches[worker]
        start = max(self.now, done[-1][1] if done else self.inputs["start"])
        end = start + self.fetch_time(task)
        done.append((start, end, task))
        heapq.heappush(self.arrivals, (end, task))
        self.worker_of[task] = worker
        self.owes[worker] += 1
        self.sent += 1

    def next_worker(self):
        """In turn; without order, one that has less than its share."""
        while True:
            worker = self.turn % len(self.fetches)
            self.turn += 1
            if self.inputs["ordered"] or self.owes[worker] < self.inputs["prefetch"]:
                return worker

    def next_batch(self):
        """The batch that is handed over now: in PyTorch `_next_data`."""
        while True:
            if self.inputs["ordered"] and self.received in self.arrived:
                batch = self.received
                break
            came, batch = heapq.heappop(self.arrivals)
            if came > self.now:
                self.waits.append((self.now, came, batch))
                self.now = came
            self.arrived[batch] = came
            if not self.inputs["ordered"]:
                break
        fetched = sum(end <= self.now for end, _ in self.arrivals)  # in the queue, or underway
        self.most_ready = max(self.most_ready, fetched + len(self.arrived))
        del self.arrived[batch]
        self.received += 1
        self.owes[self.worker_of[batch]] -= 1
        self.send()
        return batch


def model(inputs):
    epoch = Epoch(inputs).run()
    waited = sum(end - start for start, end, _ in epoch.waits)
    order = [batch for _, _, batch in epoch.works]
    return {
        "waits": epoch.waits,
        "works": epoch.works,
        "lanes": epoch.fetches,
        "order": order,
        "total": epoch.now,
        "waited": waited,
        "ready": epoch.most_ready,
        "say": sentence(inputs, epoch, waited, order),
    }


def sentence(inputs, epoch, waited, order):
    count, workers = inputs["batches"], inputs["workers"]
    say = (
        f"{count} batch{'es' * (count != 1)} with {workers} worker{'s' * (workers != 1)} take{'s' * (count == 1)} {short(epoch.now)} ms; "
        f"the training waits for {short(waited)} ms of them. {with_one_more(inputs, epoch.now)}"
    )
    if order != sorted(order):
        say += " The batches come in another order than the sampler's."
    return say


def with_one_more(inputs, now):
    """What another worker would do: not a rule, but the same epoch once more."""
    other = short(Epoch(inputs | {"workers": inputs["workers"] + 1}).run().now)
    return "One worker more changes nothing." if other == short(now) else f"With one worker more: {other} ms."


def short(milliseconds):
    return f"{milliseconds * (1 + 1e-12):.1f}".removesuffix(".0")


def picture(result, step):
    rows = [("training", result["works"]), *((f"worker {i}", lane) for i, lane in enumerate(result["lanes"]))]
    return lanes(rows, result["total"], lambda row, batch: "pick" if row == 0 else "pale")


def sample(random):
    """Times without ties: which of two events at the same moment comes first would be decided by rounding."""
    irregular = {
        name: random.uniform(low, high)
        for name, low, high in (("fetch", 1, 30), ("slow", 20, 90), ("work", 0.5, 30), ("start", 0, 60))
    }
    return irregular | {"batches": random.randint(1, 40), "workers": random.randint(0, MOST_WORKERS)}


FIGURE = Figure(
    name="loader_epoch",
    title="One epoch, in virtual time",
    inputs=(
        Integer("workers", "num_workers", 2, low=0, high=MOST_WORKERS, slider=True),
        Integer("prefetch", "prefetch_factor", 2, low=1, high=8),
        Switch("ordered", "in_order", True),
        Number("fetch", "fetch a batch", 8, low=0.1, high=1000, unit="ms", step=1),
        Number("work", "train on it", 6, low=0, high=1000, unit="ms", step=1),
        Number("slow", "fetch a slow one", 40, low=0.1, high=1000, unit="ms", step=1),
        Integer("every", "batches per slow one (0: none)", 0, low=0, high=40, hint="5: batches 0, 5, 10 … are slow"),
        Number("start", "a worker starts in", 20, low=0, high=5000, unit="ms", step=5),
        Integer("batches", "batches", 16, low=1, high=100),
    ),
    model=model,
    picture=picture,
    helpers=("_lanes",),
    sample=sample,
)  # fmt: skip
