"""What every test shares: one thread, reproducible hypothesis runs, and the options that lengthen a run."""

import gc
import os
import sys
import time

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before numpy loads: two pools of spinning threads slow each other down

import hypothesis
import pytest

try:
    import torch
except ImportError:  # a machine with a GPU and no reference: tests marked gpu compare with our CPU
    torch = None

from .browsing import axe, browser, visit  # noqa: F401  one browser for the whole run
from .turns import scheduler, turn

if torch is not None:
    torch.set_num_threads(1)
    torch.manual_seed(0)  # inputs that are made while tests are collected: the same in every worker

# `derandomize`: a run of the whole suite tries the same examples every time. New ones: HYPOTHESIS_PROFILE=again
# with --hypothesis-seed=N and READTORCH_SEED=N repeats the suite with other numbers; HYPOTHESIS_PROFILE=search
# looks for long. A busy machine is no fault: that examples are made slowly fails nothing.
_common = dict(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("suite", **_common, derandomize=True, max_examples=50)
hypothesis.settings.register_profile("again", **_common, max_examples=50)
hypothesis.settings.register_profile("search", **_common, max_examples=1000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


def pytest_addoption(parser):
    parser.addoption(
        "--full-conformance",
        action="store_true",
        default=bool(os.environ.get("READTORCH_FULL_CONFORMANCE")),
        help="run every op_db sample of every operator (hours become minutes without it)",
    )


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist nobody asks
def pytest_xdist_make_scheduler(config, log):
    return scheduler(config, log) if config.getoption("dist") == "loadfile" else None


class Teller:
    """Tells of a failure when it happens, and every five minutes where it is: a run that somebody ends early has said so much."""

    def __init__(self, terminal):
        self.terminal, self.begun, self.told = terminal, time.monotonic(), 0

    def tell(self, text):
        self.terminal.ensure_newline()
        self.terminal.write_line(text)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.tell(f"FAILED {report.nodeid} ({report.when})\n{report.longreprtext}")

    def pytest_runtest_logfinish(self, nodeid):
        minutes = int(time.monotonic() - self.begun) // 60
        if minutes >= self.told + 5:
            self.told = minutes
            self.tell(f"{minutes} minutes: {nodeid} has ended")


@pytest.hookimpl(trylast=True)  # after the terminal's own reporter
def pytest_configure(config):
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and os.environ.get("CI"):  # of several processes: the one that prints
        config.pluginmanager.register(Teller(terminal), "teller")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    if not hasattr(item.config, "workerinput"):  # the only process that runs tests
        return (yield)
    with turn(alone=item.get_closest_marker("alone") is not None):
        return (yield)


@pytest.fixture(autouse=True, scope="module")
def nothing_old_for_the_collector():
    """Many tests call gc.collect(). It need not look, each time, at all that was there before the file's first test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def no_device_is_left():
    """A file that simulates devices takes them away again: which files a process runs next is the scheduler's choice."""
    yield
    cuda = sys.modules.get("readtorch.cuda")
    if cuda is not None and cuda.is_available() and "simulated" in cuda.get_device_name(0):
        cuda.simulate(0)  # the next file shall not suffer from it
        pytest.fail("simulated devices are left: cuda.simulate(0) takes them away")


@pytest.fixture(autouse=True, scope="session")
def every_warning():
    """What readtorch says once a process it says in each test: which tests a process runs before is the scheduler's choice."""
    import readtorch

    readtorch.set_warn_always(True)


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """Each test starts from the same random state in both implementations, whatever ran before it."""
    seed = int(os.environ.get("READTORCH_SEED", 0))
    if torch is None:
        import readtorch

        readtorch.manual_seed(seed)
    else:
        from tests.reference import seed_both

        seed_both(seed)
