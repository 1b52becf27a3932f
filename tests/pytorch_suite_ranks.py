"""Stands in for `torch.testing._internal.common_distributed` in `tests/pytorch_suite.py`: tests whose ranks are processes or threads.

PyTorch spawns the ranks of a test, and each imports everything anew. Here they are forked, on both sides alike: the files of the suite
start no thread before their tests, and a forked rank is there at once.
"""

import functools
import multiprocessing
import os
import socket
import tempfile
import time
import traceback
import types
import unittest

SECONDS = (
    float(os.environ.get("PYTORCH_SUITE_SECONDS", 30)) - 5
)  # for the ranks of one test, less than the test itself has
FAILED, SKIPPED = 10, 72  # exit codes: PyTorch's `TEST_ERROR_EXIT_CODE`, and one of its `TEST_SKIPS`
SKIPS = range(SKIPPED, 100)


def multi_process_test_case(base):
    """As `MultiProcessTestCase`, above the side's own TestCase: `_spawn_processes` forks ranks, each of which runs the test's method."""

    class MultiProcessTestCase(base):
        MAIN_PROCESS_RANK, TEST_ERROR_EXIT_CODE = -1, FAILED
        world_size, destroy_pg_upon_exit = 4, True

        def __init__(self, method_name="runTest", methodName="runTest"):
            name = method_name if methodName == "runTest" else methodName
            super().__init__(name)
            setattr(self, name, types.MethodType(join_or_run(getattr(self, name)), self))

        def setUp(self):
            super().setUp()
            self.rank, self.processes, self.pipes = self.MAIN_PROCESS_RANK, [], []
            self.skip_return_code_checks = []
            self.file_name = tempfile.NamedTemporaryFile(delete=False).name

        def tearDown(self):
            super().tearDown()
            for process in self.processes:
                process.kill()

        def _spawn_processes(self):
            fork = multiprocessing.get_context("fork")
            for rank in range(int(self.world_size)):
                ours, theirs = fork.Pipe(duplex=False)
                process = fork.Process(target=self._run_rank, args=(rank, theirs), daemon=True)
                process.start()
                self.processes.append(process)
                self.pipes.append(ours)

        _fork_processes = _spawn_processes

        def _run_rank(self, rank, pipe):
            self.rank = rank
            os._exit(exit_code(self, pipe))

        def _join_processes(self, fn):
            deadline = time.monotonic() + SECONDS
            running = self.processes
            while running and time.monotonic() < deadline and not any(p.exitcode == FAILED for p in self.processes):
                running = [p for p in self.processes if p.exitcode is None]
                time.sleep(0.02)
            said = [pipe.recv() for pipe, p in zip(self.pipes, self.processes) if p.exitcode == FAILED and pipe.poll()]
            if said:
                raise RuntimeError("\n".join(said))
            codes = [p.exitcode for p in self.processes]
            if None in codes:
                raise RuntimeError(f"rank {codes.index(None)} did not end within {SECONDS:.0f} s")
            if codes and codes[0] in SKIPS:
                raise unittest.SkipTest("a rank says so")
            if fn not in self.skip_return_code_checks:
                self.assertEqual(set(codes) - {0}, set())

        def _current_test_name(self):
            return self.id().split(".")[-1]

        @property
        def is_master(self):
            return self.rank == 0

    return MultiProcessTestCase


def compile_before_forking(torch):
    """Kernels that are compiled when they are first needed: else each forked rank would compile them for itself."""
    for dtype in (torch.float32, torch.float64):
        torch.rand(2, dtype=dtype), torch.randn(20, dtype=dtype)
    torch.randint(0, 5, (2,)), torch.randperm(4)
    torch.allclose(torch.ones(3), torch.ones(3))
    model = torch.nn.Linear(2, 2)
    torch.nn.functional.mse_loss(model(torch.ones(2, 2)), torch.zeros(2, 2)).backward()


def join_or_run(method):
    """The method of a test: a rank runs it, the process that made the ranks waits for them."""

    @functools.wraps(method)
    def wrapper(self):
        return self._join_processes(method) if self.rank == self.MAIN_PROCESS_RANK else method()

    return wrapper


def exit_code(test, pipe):
    """Run a rank's test in a process of its own; the error goes to the one that waits."""
    import torch.distributed as dist

    try:
        getattr(test, test._testMethodName)()
        if test.destroy_pg_upon_exit and dist.is_initialized():
            dist.destroy_process_group()
    except unittest.SkipTest:
        return SKIPPED
    except SystemExit as end:
        return end.code or 0
    except BaseException:
        pipe.send(traceback.format_exc())
        return FAILED
    return 0


def multi_threaded_test_case(base):
    """As `MultiThreadedTestCase`, by `run_threads`: `_spawn_threads` only says that the test's method runs on each rank."""

    class MultiThreadedTestCase(base):
        world_size = 4

        def __init__(self, method_name="runTest", methodName="runTest"):
            name = method_name if methodName == "runTest" else methodName
            super().__init__(name)
            setattr(self, name, functools.partial(self._run_ranks, getattr(self, name)))

        def _spawn_threads(self):
            pass

        def perThreadSetUp(self):
            pass

        perThreadTearDown = perThreadSetUp

        def _run_ranks(self, method):
            from readtorch.distributed import run_threads

            def rank(number):
                self.perThreadSetUp()
                method()
                self.perThreadTearDown()

            run_threads(rank, self.world_size)

    return MultiThreadedTestCase


def skip_if_lt_x_gpu(count):
    """A test for so many GPUs: no machine here has them."""
    return unittest.skip(f"Need at least {count} CUDA devices")


def requires_nccl(*args):
    return unittest.skip("c10d was not compiled with the NCCL backend")


def with_dist_debug_levels(levels):
    """Run a test once for each level of TORCH_DISTRIBUTED_DEBUG."""

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            import torch.distributed as dist

            before = os.environ.get("TORCH_DISTRIBUTED_DEBUG")
            for level in levels:
                os.environ["TORCH_DISTRIBUTED_DEBUG"] = level
                dist.set_debug_level_from_env()
                function(*args, **kwargs)
                dist.barrier()
            if before is not None:
                os.environ["TORCH_DISTRIBUTED_DEBUG"] = before

        return wrapper

    return decorate


def create_device(interface=None, lazy_init=False):
    import torch.distributed as dist

    return dist.ProcessGroupGloo.create_device(interface=interface, lazy_init=lazy_init)


def find_free_port():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return free.getsockname()[1]


def create_tcp_store(addr="localhost", world_size=1, is_master=True, wait_for_workers=True, use_libuv=True, **options):
    """A store that listens on a port that is free."""
    import torch.distributed as dist

    return dist.TCPStore(
        addr, 0, world_size, is_master, wait_for_workers=wait_for_workers, use_libuv=use_libuv, **options
    )


def simple_sparse_reduce_tests(rank, world_size, num_inputs=1):
    """Pairs of what a rank gives to a sum of sparse tensors, and what all get, over numbers of sparse and of dense dimensions."""
    import torch

    ranks = num_inputs * world_size

    def of(rank, sparse, dense):
        """Ones in the first rows, as many as the rank's number says, the other sparse dimensions at 0."""
        indices = torch.zeros(sparse, rank + 1, dtype=torch.int64)
        indices[0] = torch.arange(rank + 1)
        return torch.sparse_coo_tensor(indices, torch.ones(rank + 1, *[2] * dense), [ranks] * sparse + [2] * dense)

    def case(*dimensions):
        total = functools.reduce(lambda a, b: a + b, [of(r, *dimensions) for r in range(ranks)])
        return [of(num_inputs * rank + i, *dimensions) for i in range(num_inputs)], [total] * num_inputs

    return [case(*dimensions) for dimensions in ((1, 0), (2, 0), (3, 0), (1, 1), (1, 2), (1, 3))]


def verify_ddp_error_logged(model_DDP, err_substr):
    said = model_DDP._get_ddp_logging_data()
    assert {"iteration", "has_error", "error"} <= set(said)
    assert err_substr.partition("\nException raised from ")[0] in said["error"]


def names(base):
    """What the module that this stands in for has."""
    return {
        "MultiProcessTestCase": multi_process_test_case(base),
        "DistributedTestBase": multi_process_test_case(base),
        "MultiThreadedTestCase": multi_threaded_test_case(base),
        "skip_if_lt_x_gpu": skip_if_lt_x_gpu,
        "requires_nccl": requires_nccl,
        "with_dist_debug_levels": with_dist_debug_levels,
        "create_device": create_device,
        "create_tcp_store": create_tcp_store,
        "simple_sparse_reduce_tests": simple_sparse_reduce_tests,
        "verify_ddp_error_logged": verify_ddp_error_logged,
        "tp_transports": lambda: None,
        "find_free_port": find_free_port,
        "TEST_SKIPS": _Skips(),
        "TEST_MULTIGPU": False,
        "CONNECT_TIMEOUT": "connect() timed out.",
        "ADDRESS_IN_USE": "Address already in use",
        "TEST_WITH_DEV_DBG_ASAN": False,
        "retry_on_connect_failures": _retried,
        "skip_if_win32": lambda: lambda test: test,
        "requires_gloo": lambda: lambda test: test,
        "skip_but_pass_in_sandcastle": unittest.skip,
        "skip_but_pass_in_sandcastle_if": unittest.skipIf,
    }


def _retried(function=None, connect_errors=None):
    return function if function is not None else lambda function: function


class _Skips(dict):
    def __missing__(self, reason):
        return types.SimpleNamespace(exit_code=SKIPPED, message=reason)
