"""A pytest plugin in two parts: one records which functions each test runs, the other runs the tests that it is given.

It does what the JSON file says that the environment variable READTORCH_MUTATION names; see trace.py and __main__.py.
Functions are named "file:line", the file from the package's folder, the line where the code begins (with its decorators).
"""

import faulthandler
import json
import os
import pathlib
import sys
import tempfile
import threading
import time
import types

import pytest

PACKAGE = str(pathlib.Path(__file__).resolve().parents[2] / "src/readtorch") + "/"
ORDERS = json.loads(pathlib.Path(os.environ["READTORCH_MUTATION"]).read_text(encoding="utf8"))
PRINTED = os.dup(2)  # before pytest keeps what tests print


def share_kernels_between_copies():
    """A kernel's file is found by the place of its source: here the place within the copy, so that all copies share one cache."""
    from readtorch.c10.codecache import KernelCache

    def place(self):
        code = self.function.__code__
        return code.co_filename.removeprefix(PACKAGE), code.co_firstlineno

    KernelCache.place = property(place)


# ---------------------------------------------------------------------------------------------------- recording


class Recorder:
    """Which functions run: in this process and in those that it forks, in Python and compiled."""

    def __init__(self):
        self.process, self.codes, self.kernels, self.reached = os.getpid(), {}, {}, {}
        self.others = os.open(tempfile.mkstemp()[1], os.O_RDWR | os.O_APPEND)
        self.position = 0

    def start(self):
        threading.settrace(self.called)
        sys.settrace(self.called)

    def called(self, frame, event, argument, getpid=os.getpid):
        """Python calls this with each frame that begins; None: nothing more about this one."""
        code = frame.f_code
        if id(code) not in self.codes:
            self.codes[id(code)] = code
            if getpid() != self.process and code.co_filename.startswith(PACKAGE):
                os.write(self.others, (name_of(code) + "\n").encode())

    def watch_kernels(self):
        from numba.core.registry import CPUDispatcher

        recorder, call = self, CPUDispatcher.__mro__[1].__call__

        def called(dispatcher, *args, **kwargs):
            recorder.kernels[id(dispatcher)] = dispatcher
            return call(dispatcher, *args, **kwargs)

        CPUDispatcher.__call__ = called

    def taken(self):
        """(the functions that ran since the last time, those of them that are compiled)."""
        ran = {name_of(code) for code in list(self.codes.values()) if code.co_filename.startswith(PACKAGE)}
        os.lseek(self.others, self.position, os.SEEK_SET)
        while text := os.read(self.others, 1 << 20):
            ran |= set(text.decode().split())
            self.position += len(text)
        compiled = set()
        for dispatcher in list(self.kernels.values()):
            compiled |= self.compiled_with(dispatcher)
        self.codes.clear()
        self.kernels.clear()
        return ran | compiled, compiled

    def compiled_with(self, dispatcher):
        if id(dispatcher) not in self.reached:
            self.reached[id(dispatcher)] = dispatcher, functions_within(dispatcher)
        return self.reached[id(dispatcher)][1]


def name_of(code):
    return f"{code.co_filename.removeprefix(PACKAGE)}:{code.co_firstlineno}"


def functions_within(kernel):
    """The names of the package's functions that a compiled one may call."""
    names, seen, left = set(), set(), [kernel]
    while left:
        function = left.pop()
        function = getattr(function, "py_func", function)
        if not isinstance(function, types.FunctionType) or id(function) in seen:
            continue
        seen.add(id(function))
        if function.__code__.co_filename.startswith(PACKAGE):
            names.add(name_of(function.__code__))
        left += [function.__globals__[name] for name in names_in(function.__code__) if name in function.__globals__]
        left += [cell.cell_contents for cell in function.__closure__ or ()]
    return names


def names_in(code):
    inner = [names_in(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*inner)


class Record:
    """The part of pytest that records."""

    def __init__(self):
        self.recorder, self.tests, self.compiled, self.imported = Recorder(), {}, set(), None
        self.recorder.start()

    def pytest_collection_finish(self):
        self.imported, _ = self.recorder.taken()
        self.recorder.watch_kernels()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        self.recorder.start()  # a test may have switched it off
        self.failed, began = False, time.monotonic()
        try:
            return (yield)
        finally:
            seconds = time.monotonic() - began
            sys.settrace(None)
            ran, compiled = self.recorder.taken()
            self.compiled |= compiled
            self.tests[item.nodeid] = {"seconds": round(seconds, 2), "failed": self.failed, "ran": sorted(ran)}

    def pytest_runtest_logreport(self, report):
        self.failed |= report.failed

    def pytest_sessionfinish(self):
        functions = sorted({name for test in self.tests.values() for name in test["ran"]})
        number = {name: i for i, name in enumerate(functions)}
        for test in self.tests.values():
            test["ran"] = [number[name] for name in test["ran"]]
        text = json.dumps(
            {
                "functions": functions,
                "imported": sorted(self.imported or ()),
                "compiled": sorted(self.compiled),
                "tests": self.tests,
            }
        )
        pathlib.Path(ORDERS["record"]).write_text(text, encoding="utf8")


# ------------------------------------------------------------------------------------------------------ running


class Selected:
    """The part of pytest that runs given tests, in the order given; one that takes far too long ends the process."""

    def pytest_collection_modifyitems(self, config, items):
        order = {name: i for i, name in enumerate(ORDERS["tests"])}
        chosen = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in order])
        items[:] = chosen

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        pathlib.Path(ORDERS["now"]).write_text(item.nodeid, encoding="utf8")
        faulthandler.dump_traceback_later(ORDERS["limits"][item.nodeid], exit=True, file=PRINTED)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()


def pytest_configure(config):
    share_kernels_between_copies()
    config.pluginmanager.register(RECORD or Selected(), "mutation")


RECORD = Record() if "record" in ORDERS else None
