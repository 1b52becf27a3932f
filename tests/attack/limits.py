"""What one attack may take: a process of its own, some seconds, some memory, and nothing from outside."""

import json
import os
import pathlib
import resource
import select
import signal
import subprocess
import sys
import time
import traceback

ROOT = pathlib.Path(__file__).parents[2]
GIGABYTE = 1 << 30
WATCHED = (
    "os.",
    "subprocess.",
    "exec",
    "compile",
    "import",
    "open",
    "socket.",
    "ctypes.",
    "shutil.",
    "pty.",
    "marshal.",
    "tempfile.",
    "webbrowser.",
    "code.__new__",
    "function.__new__",
    "object.__setattr__",
    "object.__delattr__",
    "pickle.find_class",
)


class Watch:
    """An audit hook: what runs while it is on. `harmless(event, arguments)`: what does not count."""

    def __init__(self, harmless=lambda event, arguments: False):
        self.on = False
        self.events = []
        self.harmless = harmless
        sys.addaudithook(self._hook)

    def _hook(self, event, arguments):
        if self.on and event.startswith(WATCHED) and not self.harmless(event, arguments):
            self.events.append(f"{event} {str(arguments)[:200]}")


def alone(function, seconds=10, memory=GIGABYTE):
    """function() in a process made by fork: {"result": …, "peak": bytes more than before} from JSON, or {"died": signal or
    status} or {"late": seconds}. In it MemoryError is raised at twice the memory.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _run(function, writing, memory)
    os.close(writing)
    answer, late = _read(reading, time.monotonic() + seconds)
    os.close(reading)
    if late:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if late:
        return {"late": seconds}
    return json.loads(answer) if answer.endswith(b"}\n") else {"died": os.waitstatus_to_exitcode(status)}


def one_by_one(function, cases, seconds, memory=GIGABYTE):
    """([function(*case)], None) from a process made by fork; ([those before], {"died": …} or {"late": …}) if it does not come to
    the end, or a case takes more than `seconds`.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            allow_more_memory(memory)
            for case in cases:
                answer = json.dumps(function(*case)).encode() + b"\n"
                while answer:
                    answer = answer[os.write(writing, answer) :]
        finally:
            os._exit(0)
    os.close(writing)
    answers, data, late = [], b"", False
    while len(answers) < len(cases):
        line, data, late = _read_line(reading, data, time.monotonic() + seconds)
        if line is None:
            break
        answers.append(json.loads(line))
    os.close(reading)
    if late:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if len(answers) == len(cases):
        return answers, None
    return answers, {"late": seconds} if late else {"died": os.waitstatus_to_exitcode(status)}


def _read_line(reading, data, deadline):
    """(a line or None, what came behind it, whether that took too long)"""
    while b"\n" not in data:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reading], [], [], left)[0]:
            return None, data, True
        piece = os.read(reading, 1 << 16)
        if not piece:
            return None, data, False
        data += piece
    line, _, data = data.partition(b"\n")
    return line, data, False


def _run(function, writing, memory):
    try:
        forget_peak()
        before = peak()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        allow_more_memory(2 * memory)
        result = function()
        answer = json.dumps({"result": result, "peak": peak() - before}).encode() + b"\n"
        while answer:
            answer = answer[os.write(writing, answer) :]
    except BaseException:
        traceback.print_exc()  # on the test's page: the caller sees only that nothing came
        sys.stderr.flush()
    finally:
        os._exit(0)


def _read(reading, deadline):
    """What comes through the pipe until its end, and whether that took too long."""
    data = b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reading], [], [], left)[0]:
            return data, True
        piece = os.read(reading, 1 << 16)
        if not piece:
            return data, False
        data += piece


def peak():
    """The most memory that this process has held since `forget_peak`, in bytes."""
    return _status("VmHWM")


def forget_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def allow_more_memory(count):
    """Another `count` bytes for this process; then MemoryError."""
    resource.setrlimit(resource.RLIMIT_DATA, (_status("VmData") + count, resource.RLIM_INFINITY))


def _status(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(name))


def run_module(*arguments, timeout=300):
    """`python -m …` in the repository's root, with readtorch and the tests at hand: its output. Raises AssertionError if it
    fails.
    """
    path = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONWARNINGS": "ignore",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=timeout, cwd=ROOT, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
