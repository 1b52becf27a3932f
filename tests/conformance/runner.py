"""Runs the checks for one operator or one module: all its variants, dtypes and samples."""
import dataclasses
import time

import torch

from tests.conformance import catalog, checks, module_checks
from tests.reference import DTYPES, seed_both


@dataclasses.dataclass
class Report:
    """What one operator's run found."""
    name: str
    group: str
    variants: int = 0
    samples: int = 0                 # sample inputs and error inputs that were tried
    failed_samples: int = 0
    skipped: int = 0                 # samples with devices, layouts or dtypes that readtorch does not have
    seconds: float = 0.0
    findings: list = dataclasses.field(default_factory=list)

    @property
    def failures(self):
        return [f for f in self.findings if f.kind == "FAIL"]

    @property
    def passes(self):
        return self.samples > 0 and not self.failures

    def count(self, kind):
        return sum(f.kind == kind for f in self.findings)

    def add(self, findings, dtype):
        self.samples += 1
        self.failed_samples += any(f.kind == "FAIL" for f in findings)
        for finding in findings:
            finding.dtype = dtype
        self.findings += findings


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
    report.seconds = time.perf_counter() - began
    return report


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
    info = catalog.module_infos().get(name)
    report.variants = int(info is not None)
    if info is not None and report.passes:
        for dtype in dtypes or MODULE_DTYPES:
            for training in (True, False):
                _run_calls(info, dtype, training, limit, report)
        if errors:
            for error_call in module_checks.error_calls(info):
                report.add(module_checks.check_error_call(*error_call), "")
    report.seconds = time.perf_counter() - began
    return report


def _run_calls(info, dtype, training, limit, report):
    every = module_checks.calls_of(info, dtype, training)
    calls = [call for call in every if module_checks.runs_here(call)]
    report.skipped += len(every) - len(calls)
    for i, call in enumerate(spread(calls, limit)):
        report.add(module_checks.check_call(info, call, deep=i < 2), str(dtype).removeprefix("torch."))


def spread(items, limit):
    """At most `limit` items, taken at even distances, the first and the last among them."""
    if limit is None or len(items) <= limit:
        return items
    if limit == 1:
        return items[:1]
    return [items[round(i * (len(items) - 1) / (limit - 1))] for i in range(limit)]
