"""Runs the checks for one operator, module or optimizer: all its variants, dtypes and samples."""

import dataclasses
import time

import torch

from tests.conformance import catalog, checks, known_differences, module_checks, optimizer_checks
from tests.reference import DTYPES, seed_both


@dataclasses.dataclass
class Report:
    """What one operator's run found."""

    name: str
    group: str
    variants: int = 0
    samples: int = 0  # sample inputs and error inputs that were tried
    skipped: int = 0  # samples with devices, layouts or dtypes that readtorch does not have
    seconds: float = 0.0
    findings: list = dataclasses.field(default_factory=list)
    known: list = dataclasses.field(default_factory=list)  # the known differences that were met

    @property
    def failures(self):
        return [f for f in self.findings if f.kind == "FAIL"]

    @property
    def passes(self):
        return self.samples > 0 and not self.failures

    @property
    def failed_samples(self):
        return len({f.number for f in self.failures})

    def count(self, kind):
        return sum(f.kind == kind for f in self.findings)

    def add(self, findings, dtype):
        self.samples += 1
        for finding in findings:
            finding.dtype, finding.number = dtype, self.samples
        self.findings += findings

    def finish(self, began, complete):
        """Tell the known differences from the failures; a complete run must have met each of them."""
        self.known = known_differences.explain(self.name, self.findings)
        if complete:
            expected = [d for d in known_differences.differences_of(self.name) if not d.rounding]
            gone = [d for d in expected if d not in self.known]
            self.findings += [checks.Finding("FAIL", "known difference", f"happens no more: {d.why}") for d in gone]
        self.seconds = time.perf_counter() - began
        return self


def run_op(name, dtypes=None, limit=None, errors=True):
    """Compare every variant of an operator, with at most `limit` samples a variant and dtype."""
    report = Report(name, catalog.group_of(name))
    began = time.perf_counter()
    for info in catalog.variants()[name]:
        report.variants += 1
        for dtype in _dtypes_of(info, dtypes):
            _run_samples(info, dtype, limit, report)
        if errors:
            _run_errors(info, report)
    return report.finish(began, complete=dtypes is None and limit is None and errors)


def _dtypes_of(info, wanted):
    supported = info.supported_dtypes("cpu")
    return [d for d in DTYPES if d in supported and (wanted is None or d in wanted)]


def _run_samples(info, dtype, limit, report):
    differentiable = dtype in checks.GRAD_DTYPES and info.supports_autograd
    seed_both(0)
    all_samples = list(info.sample_inputs("cpu", dtype, requires_grad=differentiable))
    samples = [s for s in all_samples if checks.is_ours(s)]
    report.skipped += len(all_samples) - len(samples)
    samples = spread(samples, limit)
    short = str(dtype).removeprefix("torch.")
    for i, sample in enumerate(samples):
        report.add(checks.check_sample(info, sample, dtype, deep=i < 2), short)
    if samples and short == "float32":
        report.findings += checks.check_aliases(info, samples[0])


def _run_errors(info, report):
    if info.error_inputs_func is None:
        return
    seed_both(0)
    for error_input in info.error_inputs("cpu"):
        if checks.is_ours(error_input.sample_input):
            report.add(checks.check_error_input(info, error_input), "")
        else:
            report.skipped += 1


MODULE_DTYPES = (torch.float32, torch.float64)


def run_module(name, dtypes=None, limit=None, errors=True):
    """Compare a class of torch.nn, with at most `limit` calls a dtype in training and in eval."""
    report = Report(name, "modules")
    began = time.perf_counter()
    report.add(module_checks.check_class(name), "")
    info = catalog.module_infos().get(name) or catalog.more_module_infos().get(name)
    report.variants = int(info is not None)
    if info is not None and report.passes:
        for dtype in dtypes or MODULE_DTYPES:
            for training in (True, False):
                _run_calls(info, dtype, training, limit, report)
        if errors:
            for error_call in module_checks.error_calls(info):
                report.add(module_checks.check_error_call(*error_call), "")
    return report.finish(began, complete=dtypes is None and limit is None and errors)


def _run_calls(info, dtype, training, limit, report):
    every = module_checks.calls_of(info, dtype, training)
    calls = [call for call in every if module_checks.runs_here(call)]
    report.skipped += len(every) - len(calls)
    for i, call in enumerate(spread(calls, limit)):
        report.add(module_checks.check_call(info, call, deep=i < 2), str(dtype).removeprefix("torch."))


def run_optimizer(name, dtypes=None):
    """Compare an optimizer of optim_db with each of its settings."""
    report = Report(name, "optimizers", variants=1)
    began = time.perf_counter()
    info = catalog.optimizer_infos()[name]
    report.add(optimizer_checks.check_class(name), "")
    if report.passes:
        for dtype in dtypes or MODULE_DTYPES:
            for given in info.optim_inputs_func("cpu", dtype):
                found = optimizer_checks.check_settings(name, given, dtype)
                report.add(found, str(dtype).removeprefix("torch."))
        for error in info.optim_error_inputs_func("cpu", torch.float32):
            report.add(optimizer_checks.check_error(name, error), "")
    return report.finish(began, complete=dtypes is None)


def run(name):
    """A complete run of the operator, module or optimizer of that name."""
    if name in catalog.variants():
        return run_op(name)
    return (run_optimizer if name in catalog.optimizer_infos() else run_module)(name)


def spread(items, limit):
    """At most `limit` items, taken at even distances, the first and the last among them."""
    if limit is None or len(items) <= limit:
        return items
    if limit == 1:
        return items[:1]
    return [items[round(i * (len(items) - 1) / (limit - 1))] for i in range(limit)]
