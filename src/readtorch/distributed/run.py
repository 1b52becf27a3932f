"""`readtorchrun`: starts the ranks of a program on this machine and looks after them.

    readtorchrun --nproc-per-node 4 train.py --epochs 3
    readtorchrun --standalone --max-restarts 3 --nproc-per-node 2 train.py
    python -m readtorch.distributed.run --nproc-per-node 4 -m package.train

In PyTorch: `torch/distributed/run.py` (`torchrun`). Each rank finds RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and
MASTER_PORT in its environment, which `init_process_group()` reads. When one fails, the others are stopped, on all machines; then all
are started again, if --max-restarts allows that, and a program goes on from its last checkpoint. After the last time the launcher says
what failed first and ends with its exit code.

On several machines this launcher runs on each. They meet with --nnodes, --node-rank, --master-addr and --master-port, or, as their
numbers and the port need not be known, with --nnodes (4, or 2:4), --rdzv-backend c10d, --rdzv-endpoint HOST:PORT and --rdzv-id: Note
[ How launchers meet ] in `elastic/rendezvous/c10d_rendezvous_backend.py`. All need the same READTORCH_GROUP_TOKEN in their
environment: Note [ The secret of a group ] in `csrc/distributed/authentication.py`. On one machine the launcher makes that secret
itself. Each option may come from the environment, as PET_NPROC_PER_NODE.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from readtorch.csrc.distributed.authentication import VARIABLE, new_token
from readtorch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record
from readtorch.distributed.elastic.rendezvous.c10d_rendezvous_backend import Meeting

__all__ = ["main", "run"]

PATIENCE = 3.0  # seconds that a rank has to report its own error, and then to end, after another one failed


class _FromEnvironment(argparse.ArgumentParser):
    """An option that is not given is looked for in the environment: --max-restarts in PET_MAX_RESTARTS."""

    def option(self, name, **settings):
        variable = os.environ.get("PET_" + name.strip("-").replace("-", "_").upper())
        if variable is not None:
            switch = settings.get("action") == "store_true"
            settings["default"] = variable == "1" if switch else settings.get("type", str)(variable)
        names = [name, name[:2] + name[2:].replace("-", "_")] if "-" in name[2:] else [name]
        self.add_argument(*names, **settings)


def parser():
    """The command line."""
    p = _FromEnvironment("readtorchrun", description="Start the ranks of a program on this machine.")
    p.option("--nproc-per-node", type=processes, default=1, help="ranks on this machine: a number, cpu, gpu or auto")
    p.option("--nnodes", type=nodes, default=(1, 1), help="how many machines: 4, or 2:4 for two to four")
    p.option("--node-rank", type=int, default=0, help="the number of this one")
    p.option("--master-addr", default="127.0.0.1", help="the address of machine 0")
    p.option("--master-port", type=int, default=0, help="a free port there (0: find one)")
    p.option("--standalone", action="store_true", help="one machine, a free port: what happens anyway")
    p.option("--rdzv-backend", default="static", choices=["static", "c10d"], help="how launchers meet")
    p.option("--rdzv-endpoint", default="", help="host:port of the store through which they do")
    p.option("--rdzv-id", default="none", help="the same for all launchers of a job")
    p.option(
        "--rdzv-conf",
        default="",
        help="timeout=900,last_call_timeout=30: seconds for the first, and for those who may come",
    )
    p.option("--max-restarts", type=int, default=0, help="how often all ranks are started again after one failed")
    p.option("--monitor-interval", type=float, default=0.1, help="seconds between looks at the other machines")
    p.option("--role", default="default", help="a name for the ranks, in ROLE_NAME")
    p.option(
        "--log-dir", default=None, help="where error files and redirected output go (else a folder that is removed)"
    )
    p.option(
        "--redirects", default="0", help="what goes into files in --log-dir: 0 nothing, 1 stdout, 2 stderr, 3 both"
    )
    p.option("--local-addr", default=None, help="the address of this machine, if it is machine 0")
    p.add_argument("-m", "--module", action="store_true", help="the program is a module, as with python -m")
    p.option("--no-python", action="store_true", help="the program is not Python")
    p.add_argument("program")
    p.add_argument("arguments", nargs=argparse.REMAINDER)
    return p


def processes(text):
    """How many ranks: a number, or one for each processor or GPU."""
    if text in ("cpu", "gpu", "auto"):
        import readtorch

        gpus = readtorch.cuda.device_count()
        if text == "gpu" and gpus == 0:
            raise argparse.ArgumentTypeError("Cuda is not available.")
        return gpus if gpus and text != "cpu" else os.cpu_count()
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"Unsupported nproc_per_node value: {text}")
    return int(text)


def nodes(text):
    """(at least, at most) so many machines."""
    least, _, most = text.partition(":")
    try:
        least, most = int(least), int(most or least)
    except ValueError:
        raise argparse.ArgumentTypeError(f"nnodes={text} is not in the format of MIN:MAX") from None
    if not 0 < least <= most:
        raise argparse.ArgumentTypeError(f"nnodes={text}: at least one, and no more than the second number")
    return least, most


def main(args=None):
    """Run the program; returns its exit code."""
    options = parser().parse_args(args)
    try:
        return run(options)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        print(error, file=sys.stderr)
        print(f"readtorchrun: rank {rank} failed with {describe(failure.exitcode)}", file=sys.stderr)
        return failure.exitcode if failure.exitcode > 0 else 128 - failure.exitcode
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def run(options):
    """Start all ranks and wait, and again after a failure. Returns 0 if all end well; ChildFailedError if not."""
    if options.rdzv_backend == "static" and options.nnodes[1] > 1 and options.master_port == 0:
        raise SystemExit("readtorchrun: with several machines --master-port must be given")
    previous = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with tempfile.TemporaryDirectory(prefix="readtorchrun-") as folder:
            return _attempts(options, Agent(options, Path(options.log_dir or folder)))
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@record
def _attempts(options, agent):
    for attempt in range(options.max_restarts + 1):
        failures = agent.attempt(attempt)
        if failures is None:
            return 0
        left = options.max_restarts - attempt
        if left:
            words = f"readtorchrun: {_named(failures)} failed, {left} attempts left; will restart the ranks"
            print(words, file=sys.stderr)
    if not failures:
        raise SystemExit("readtorchrun: ranks on another machine failed")
    raise ChildFailedError(options.program, failures)


def _named(failures):
    return f"rank {', '.join(map(str, failures))}" if failures else "ranks on another machine"


class Agent:
    """Looks after this machine's ranks."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.alone = options.nnodes == (1, 1) or options.standalone
        self.secret = {VARIABLE: new_token()} if self.alone and not os.environ.get(VARIABLE) else {}
        self.meeting = None
        if options.rdzv_backend == "c10d" and not self.alone:
            self.meeting = Meeting(options.rdzv_endpoint, options.rdzv_id, *options.nnodes, options.rdzv_conf)

    def attempt(self, number):
        """Start all ranks and wait. None if all end well, else the failures of this machine by global rank."""
        place = self._meet(number)
        ranks = {}
        try:
            for local_rank in range(self.options.nproc_per_node):
                ranks[local_rank] = self._start(local_rank, number, place)
            well = self._look_after(ranks)
            failed = {local_rank: p for local_rank, p in ranks.items() if p.poll() not in (None, 0)}
        finally:
            stop(ranks.values())
        if well:
            return None
        first = place.node_rank * self.options.nproc_per_node
        return {
            first + r: ProcessFailure(r, p.pid, p.returncode, str(self._error_file(r, number)))
            for r, p in failed.items()
        }

    def _meet(self, number):
        """This machine's place among the others."""
        if self.meeting is not None:
            return self.meeting.next_round(self.options.local_addr)
        port = self.options.master_port or free_port()
        return Place(self.options.node_rank, self.options.nnodes[0], self.options.master_addr, port)

    def _start(self, local_rank, attempt, place):
        names = environment(self.options, local_rank, place) | self.secret
        error_file = self._error_file(local_rank, attempt)
        error_file.parent.mkdir(parents=True, exist_ok=True)
        names["TORCHELASTIC_ERROR_FILE"] = str(error_file)
        names["TORCHELASTIC_RESTART_COUNT"] = str(attempt)
        out, err = (self._output(error_file.parent, name, bit) for name, bit in (("stdout", 1), ("stderr", 2)))
        return subprocess.Popen(command(self.options), env=names, stdout=out, stderr=err)

    def _error_file(self, local_rank, attempt):
        return self.folder / f"attempt_{attempt}" / str(local_rank) / "error.json"

    def _output(self, folder, name, bit):
        return open(folder / f"{name}.log", "wb") if int(self.options.redirects) & bit else None

    def _look_after(self, ranks):
        """Until all have ended, or one has failed, here or elsewhere, and the others had time to say so too."""
        deadline, told, looked = None, False, 0.0
        while any(process.poll() is None for process in ranks.values()):
            if deadline is None and self._failed_here(ranks):
                deadline = time.monotonic() + PATIENCE
                self._tell()
                told = True
            if self.meeting is not None and not told and time.monotonic() - looked > self.options.monitor_interval:
                looked = time.monotonic()
                if self.meeting.failed():
                    return False
            if deadline is not None and time.monotonic() > deadline:
                break
            time.sleep(0.02)
        if self._failed_here(ranks):
            if not told:
                self._tell()
            return False
        return self.meeting is None or self.meeting.all_done()

    def _failed_here(self, ranks):
        return any(process.poll() not in (None, 0) for process in ranks.values())

    def _tell(self):
        if self.meeting is not None:
            self.meeting.fail()


class Place:
    """Where a machine stands in one attempt."""

    def __init__(self, node_rank, nodes, master_addr, master_port):
        self.node_rank = node_rank
        self.nodes = nodes
        self.master_addr = master_addr
        self.master_port = master_port


def command(options):
    if options.no_python:
        return [options.program, *options.arguments]
    return [sys.executable, "-u", *(["-m"] if options.module else []), options.program, *options.arguments]


def environment(options, local_rank, place):
    """What a rank finds in its environment."""
    count = options.nproc_per_node
    rank, size = place.node_rank * count + local_rank, place.nodes * count
    names = {
        "RANK": rank,
        "LOCAL_RANK": local_rank,
        "ROLE_RANK": rank,
        "ROLE_NAME": options.role,
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": count,
        "ROLE_WORLD_SIZE": size,
        "GROUP_RANK": place.node_rank,
        "GROUP_WORLD_SIZE": place.nodes,
        "MASTER_ADDR": place.master_addr,
        "MASTER_PORT": place.master_port,
        "TORCHELASTIC_MAX_RESTARTS": options.max_restarts,
        "TORCHELASTIC_RUN_ID": options.rdzv_id,
    }
    if count > 1:
        # else each rank would take all processors
        names["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", 1)
    return {**os.environ, **{name: str(value) for name, value in names.items()}}


def describe(code):
    return f"exit code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"


def stop(processes):
    """Ask those that still run to end; after `PATIENCE` end them."""
    running = [p for p in processes if p.poll() is None]
    for process in running:
        process.terminate()
        process.send_signal(signal.SIGCONT)  # one that was stopped hears nothing before
    deadline = time.monotonic() + PATIENCE
    for process in running:
        try:
            process.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port():
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _interrupt(number, frame):
    raise KeyboardInterrupt


if __name__ == "__main__":
    raise SystemExit(main())
