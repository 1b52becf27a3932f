"""`readtorchrun`: starts the ranks of a program on this machine and looks after them.

    readtorchrun --nproc-per-node 4 train.py --epochs 3
    python -m readtorch.distributed.run --nproc-per-node 4 -m package.train

In PyTorch: `torch/distributed/run.py` (`torchrun`). Each rank finds RANK, LOCAL_RANK, WORLD_SIZE,
LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment, which `init_process_group()` reads. When one
fails, the others are stopped, and the launcher ends with its exit code. For several machines: mpirun with the
backend mpi, or this launcher on each with --nnodes, --node-rank, --master-addr and --master-port, and with the
same READTORCH_GROUP_TOKEN in its environment: Note [ The secret of a group ] in
`csrc/distributed/authentication.py`. On one machine it makes that secret itself.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time

from readtorch.csrc.distributed.authentication import VARIABLE, new_token

__all__ = ["main", "run"]

PATIENCE = 3.0  # seconds that a rank has to report its own error, and then to end, after another one failed


def parser():
    """The command line."""
    p = argparse.ArgumentParser("readtorchrun", description="Start the ranks of a program on this machine.")
    p.add_argument("--nproc-per-node", "--nproc_per_node", type=int, default=1, help="ranks on this machine")
    p.add_argument("--nnodes", type=int, default=1, help="how many machines")
    p.add_argument("--node-rank", "--node_rank", type=int, default=0, help="the number of this one")
    p.add_argument("--master-addr", "--master_addr", default="127.0.0.1", help="the address of machine 0")
    p.add_argument("--master-port", "--master_port", type=int, default=0, help="a free port there (0: find one)")
    p.add_argument("--standalone", action="store_true", help="one machine, a free port: what happens anyway")
    p.add_argument("-m", "--module", action="store_true", help="the program is a module, as with python -m")
    p.add_argument("--no-python", "--no_python", action="store_true", help="the program is not Python")
    p.add_argument("program")
    p.add_argument("arguments", nargs=argparse.REMAINDER)
    return p


def main(args=None):
    """Run the program; returns its exit code."""
    return run(parser().parse_args(args))


def run(options):
    """Start all ranks and wait. Returns 0 if all end well, else the code of the first that did not."""
    if options.nnodes > 1 and options.master_port == 0:
        raise SystemExit("readtorchrun: with several machines --master-port must be given")
    port = options.master_port or free_port()
    secret = {} if options.nnodes > 1 or os.environ.get(VARIABLE) else {VARIABLE: new_token()}
    ranks = {}
    previous = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for local_rank in range(options.nproc_per_node):
            names = environment(options, local_rank, port) | secret
            ranks[local_rank] = subprocess.Popen(command(options), env=names)
        return look_after(ranks, options)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        stop(ranks.values())
        for number, handler in previous.items():
            signal.signal(number, handler)


def command(options):
    if options.no_python:
        return [options.program, *options.arguments]
    return [sys.executable, "-u", *(["-m"] if options.module else []), options.program, *options.arguments]


def environment(options, local_rank, port):
    """What a rank finds in its environment."""
    count = options.nproc_per_node
    names = {
        "RANK": options.node_rank * count + local_rank,
        "LOCAL_RANK": local_rank,
        "WORLD_SIZE": options.nnodes * count,
        "LOCAL_WORLD_SIZE": count,
        "GROUP_RANK": options.node_rank,
        "MASTER_ADDR": options.master_addr,
        "MASTER_PORT": port,
        "TORCHELASTIC_RUN_ID": "none",
    }
    if count > 1:
        # else each rank would take all processors
        names["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", 1)
    return {**os.environ, **{name: str(value) for name, value in names.items()}}


def look_after(ranks, options):
    """Until all have ended, or one has failed and the others had time to say so too."""
    failed, deadline = None, None
    while any(process.poll() is None for process in ranks.values()):
        if failed is None:
            failed = first_failure(ranks)
            deadline = time.monotonic() + PATIENCE
        if failed is not None and time.monotonic() > deadline:
            break
        time.sleep(0.02)
    failed = first_failure(ranks) if failed is None else failed
    if failed is None:
        return 0
    local_rank, code = failed
    rank = options.node_rank * options.nproc_per_node + local_rank
    print(f"readtorchrun: rank {rank} failed with {describe(code)}", file=sys.stderr)
    return code if code > 0 else 128 - code


def first_failure(ranks):
    """(local rank, exit code) of a rank that failed, or None."""
    for local_rank, process in ranks.items():
        code = process.poll()
        if code is not None and code != 0:
            return local_rank, code
    return None


def describe(code):
    return f"exit code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"


def stop(processes):
    """Ask those that still run to end; after `PATIENCE` end them."""
    running = [p for p in processes if p.poll() is None]
    for process in running:
        process.terminate()
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
