"""Many calls in one child after another: a process that has loaded the libraries takes call upon call until one ends it.

A program is a module with a function `attack(number, report)`. `survivors` runs it for many numbers in child processes; a child
says which number and which library it is at before it goes on, so that after a death, or a silence, it is known whose it was.
"""

import collections
import concurrent.futures
import datetime
import json
import os
import select
import subprocess
import sys
import time

import numpy
import torch

import readtorch

STARTING = 120  # seconds that a child may take until its first call


def serve(attack):
    """In a child: numbers come on stdin, what `attack(number, report)` reports goes out at descriptor 3, a line of JSON each."""
    channel = os.fdopen(int(os.environ["ATTACK_CHANNEL"]), "w")

    def report(**what):
        channel.write(json.dumps(what) + "\n")
        channel.flush()

    report(ready=True)
    for line in sys.stdin:
        attack(int(line), report)


class Child:
    """A process that runs attacks, one number after another."""

    def __init__(self, module, arguments):
        reading, writing = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, "--child", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(writing,),
            env={**os.environ, "ATTACK_CHANNEL": str(writing)},
        )
        os.close(writing)
        self.channel, self.rest = reading, b""

    def send(self, number):
        try:
            self.process.stdin.write(f"{number}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has died; `receive` will see that

    def receive(self, seconds):
        """The next report, or None after a silence of so many seconds; raises EOFError if the child is dead."""
        until = time.monotonic() + seconds
        while b"\n" not in self.rest:
            if not select.select([self.channel], [], [], max(0, until - time.monotonic()))[0]:
                return None
            piece = os.read(self.channel, 1 << 16)
            if not piece:
                raise EOFError
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def end(self):
        """Ends the process; returns its exit status, which is -signal if it died of one."""
        self.process.kill()
        status = self.process.wait()
        os.close(self.channel)
        self.process.stdin.close()
        return status


def survivors(module, arguments, numbers, seconds):
    """Runs the numbers in a child after another; yields (number, reports). The last report is what became of it: the attack's
    own, or {"died": signal}, {"hung": True}; "at" says in which library, with what else was reported on the way.
    """
    child = None
    for number in numbers:
        if child is None:
            child = Child(module, arguments)
            assert child.receive(STARTING), "a child did not start"
        child.send(number)
        at, told, end = "ours", {}, None
        while end is None:
            try:
                said = child.receive(seconds)
            except EOFError:
                child.process.wait()
                end = {"died": child.end(), "at": at, **told}
                child = None
                break
            if said is None:
                child.end()
                end = {"hung": True, "at": at, **told}
                child = None
            elif "at" in said:
                at = said.pop("at")
                told.update(said)
            else:
                end = said
        yield number, end
    if child is not None:
        child.end()


# --------------------------------------------------------------------------------- calls beside PyTorch (calls.judge)


def judged(module, arguments, numbers, seconds, told):
    """`survivors`, each end with what became of the call. What dies is tried again in a child of its own, for PyTorch may have
    written over the libraries' memory in a call before; what hangs, with more time, for kernels may be new.
    told(number): the call, for those that did not live to say it.
    """
    for number, end in survivors(module, arguments, numbers, seconds):
        if end.get("at") == "ours":
            end = next(survivors(module, arguments, [number], 3 * seconds))[1]
        if "became" not in end:
            end.setdefault("call", told(number))
            end["became"] = f"{'we' if end['at'] == 'ours' else 'torch'} {'died' if 'died' in end else 'hung'}"
        yield number, end


def in_parallel(run, numbers, jobs, log=None):
    """The ends of run(share) for `jobs` shares of the numbers; log: a file for each of them, a line of JSON each."""
    file = open(log, "w") if log else None

    def work(share):
        found = []
        for number, end in run(share):
            found.append(end)
            if file:
                print(json.dumps({"number": number, **end}), file=file, flush=True)
        return found

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return [end for found in pool.map(work, [numbers[i::jobs] for i in range(jobs)]) for end in found]


def failure(end):
    """Why a call counts as a failure of ours, or None."""
    if end.get("at") == "ours":
        return "died" if "died" in end else "hung"
    return ", ".join(end.get("verdicts", [])) or None


def report(ends, facts, path=None):
    """Prints the summary of a whole run and writes it to `path`; the exit status."""
    counts = collections.Counter(end["became"] for end in ends)
    both = counts["same error"] + counts["other words"] + counts["other type"]
    summary = {
        "date": datetime.date.today().isoformat(),
        "calls": len(ends),
        **facts,
        "versions": {"readtorch": readtorch.__version__, "torch": torch.__version__, "numpy": numpy.__version__},
        "outcomes": dict(counts.most_common()),
        "refused by both": {
            "calls": both,
            "same type": both - counts["other type"],
            "same type and words": counts["same error"],
        },
        "failures": [f"{failure(end)}: {end['call']}" for end in ends if failure(end)],
    }
    text = json.dumps(summary, indent=1)
    print(text)
    if path:
        with open(path, "w") as file:
            file.write(text + "\n")
    return 1 if summary["failures"] else 0
