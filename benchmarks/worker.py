"""One implementation in a process of its own: prepares a case and times samples of it, as the driver asks.

The driver writes one JSON object a line, {"do": "prepare", "case": …} or {"do": "sample"}; the worker answers
each with one.
"""

import gc
import importlib
import json
import os
import sys
import time

from benchmarks.cases import CASES


class Worker:
    def __init__(self, implementation, seconds, threads):
        self.api = importlib.import_module(implementation)
        self.api.set_num_threads(threads)
        self.clock = time.process_time if threads == 1 else time.perf_counter
        self.seconds = seconds

    def prepare(self, name):
        """Build a case, warm it up, and find out how many calls fill one sample."""
        self.function = None
        gc.collect()
        prepared = CASES[name].prepare(self.api)
        self.function, self.units = prepared if isinstance(prepared, tuple) else (prepared, 1)
        first = self._time(1)
        self._time(2)  # what is captured in the first call is compiled in the second
        calls = 1
        while (took := self._time(calls)) < self.seconds / 4:
            calls *= 4
        self.calls = max(1, round(calls * self.seconds / took))
        return {"first": first, "calls": self.calls}

    def sample(self):
        return {"seconds": self._time(self.calls) / self.calls / self.units}

    def _time(self, calls):
        """CPU seconds of this process: what other programs do meanwhile does not count. With more than one thread
        seconds on the wall, which waiting for one another costs."""
        function, clock = self.function, self.clock
        began = clock()
        for _ in range(calls):
            function()
        return clock() - began


def make_types(count):
    """Note [ A cache of attributes ]
    CPython keeps what it found for an attribute of a type in a cache of 4096 places, and the place follows from the number that
    the type got when it was first asked. Two attributes that every call of an operator reads may fall on one place: then both are
    looked for anew each time, and the call takes up to a tenth longer. Whether they do is chance, but the same chance in
    each process, until some type more has a number. So of processes that are compared each pair begins with other numbers.
    """
    for number in range(count):
        getattr(type(f"T{number}", (), {}), "absent", None)


def serve(implementation, seconds, threads):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the implementation prints must not get between the answers
    worker = Worker(implementation, seconds, threads)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = worker.prepare(request["case"]) if request["do"] == "prepare" else worker.sample()
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    make_types(int(sys.argv[4]))
    serve(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
