"""python -m tests.conformance: which operators agree with the reference, and why the others do not.

python -m tests.conformance --op add                 one operator (or several: --op add mul), every sample
python -m tests.conformance --group pointwise        a group of core_ops.txt
python -m tests.conformance                          core_ops.txt, 10 samples a variant and dtype
python -m tests.conformance --modules Conv2d LSTM    classes of torch.nn, every input (alone: all, 10)
python -m tests.conformance --report FILE            everything: the result file that the book shows
… --dtype float32 bfloat16   -v (each different failure)   -vv (with our innermost frames)
… --strict (strides and wording too)   --samples N | all   --json FILE   --add-passing (to passing.txt,
                                                     passing_modules.txt)
"""

import argparse
import dataclasses
import json
import os
import sys

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import torch  # noqa: E402  (after the threads are set)

import readtorch as rt  # noqa: E402
from tests.conformance import catalog, checks, report, runner  # noqa: E402
from tests.reference import tensors_on  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--op", nargs="+", help="operator names as in op_db")
    parser.add_argument("--group", nargs="+", help="groups of core_ops.txt, or how their names begin")
    parser.add_argument("--modules", nargs="*", help="classes of torch.nn; without a name all")
    parser.add_argument("--optimizers", nargs="*", help="classes of torch.optim; without a name all")
    parser.add_argument("--all", action="store_true", help="all operators of op_db that exist")
    parser.add_argument("--dtype", nargs="+", help="float32, int64 …")
    parser.add_argument("--samples", default=None, help="samples a variant and dtype: a number or 'all'")
    parser.add_argument("--no-errors", action="store_true", help="leave the error inputs out")
    parser.add_argument("--strict", action="store_true", help="the notes count as failures, too")
    parser.add_argument("-v", "--verbose", action="count", default=0)
    parser.add_argument("--report", metavar="FILE", help="compare everything and write the result file")
    parser.add_argument("--device", help="where our tensors are: cuda makes a simulated device unless there is a GPU")
    parser.add_argument("--json", help="write all findings to this file")
    parser.add_argument("--add-passing", action="store_true", help="add those that pass to passing.txt")
    return parser.parse_args()


def chosen(options):
    """(what is compared, the names, the function that compares one)"""
    if options.modules is not None:
        return "modules", chosen_modules(options), runner.run_module
    if options.optimizers is not None:
        return "optimizers", options.optimizers or list(catalog.optimizer_infos()), runner.run_optimizer
    return "operators", chosen_names(options), runner.run_op


def chosen_modules(options):
    unknown = set(options.modules) - set(catalog.module_names())
    if unknown:
        sys.exit(f"not in torch.nn: {', '.join(unknown)}")
    return options.modules or catalog.module_names()


def chosen_names(options):
    if options.op:
        unknown = [n for n in options.op if n not in catalog.variants()]
        if unknown:
            sys.exit(f"not in op_db: {', '.join(unknown)}")
        return options.op
    if options.group:
        begins = tuple(options.group)
        return [n for group, names in catalog.groups().items() if group.startswith(begins) for n in names]
    if options.all:
        return [name for name in catalog.all_names() if checks.exists(name)]
    return catalog.core_names()


def sample_limit(options):
    if options.samples == "all" or (options.samples is None and (options.op or options.modules)):
        return None
    return int(options.samples or 10)


def print_row(found, verbose, width=150):
    state = "ok  " if found.passes else "FAIL"
    notes = [f"{found.count(kind)} {kind}" for kind in ("known", *checks.NOTES) if found.count(kind)]
    print(
        f"{state} {found.name:26} {found.variants:3} var {found.samples:5} samples "
        f"{found.failed_samples:5} failed {found.seconds:6.1f} s  {', '.join(notes)}{_place(found)}"
    )
    shown = _distinct(found.findings if verbose else found.failures[:1])
    for finding in shown:
        reason = " ".join(finding.reason.split())
        print(f"       {finding.kind} {finding.form} {finding.dtype} {finding.sample[:width]}")
        print(f"            {reason if verbose else reason[:width]}")
        if verbose > 1 and finding.trace:
            print("            " + finding.trace.replace("\n", "\n            "))
    sys.stdout.flush()


def _place(found):
    if found.group != "modules" or found.name in catalog.module_infos():
        return ""
    return "not in module_db" if found.variants else "not in module_db: only its class is compared"


def _distinct(findings):
    """One finding for each kind, form and beginning of the reason: the others tell nothing new."""
    first = {}
    for finding in findings:
        first.setdefault((finding.kind, finding.form, finding.reason[:40]), finding)
    return list(first.values())


def main():
    options = parse()
    torch.set_num_threads(1)
    if options.device and options.device.startswith("cuda") and not rt.cuda.is_available():
        rt.cuda.simulate(2)
    with tensors_on(options.device):
        return compare(options)


def compare(options):
    dtypes = [getattr(torch, d) for d in options.dtype] if options.dtype else None
    if options.report:
        limit = int(options.samples) if (options.samples or "all") != "all" else None
        return report.write(options.report, limit, lambda row: print(row["state"], row["name"], flush=True))
    what, names, run = chosen(options)
    limits = {} if what == "optimizers" else dict(limit=sample_limit(options), errors=not options.no_errors)
    reports = []
    for name in names:
        found = run(name, dtypes, **limits)
        if options.strict:
            for finding in found.findings:
                finding.kind = "FAIL"
        print_row(found, options.verbose)
        reports.append(found)
    passing = [r.name for r in reports if r.passes]
    print(
        f"\n{len(passing)} of {len(reports)} {what} pass, "
        f"{sum(r.samples for r in reports)} samples, {sum(r.failed_samples for r in reports)} failed, "
        f"{sum(r.skipped for r in reports)} not applicable, {sum(r.seconds for r in reports):.0f} s"
    )
    if options.json:
        with open(options.json, "w") as file:
            json.dump([dataclasses.asdict(r) | {"passes": r.passes} for r in reports], file, indent=1)
    if options.add_passing and dtypes is None and what != "optimizers":
        (catalog.add_passing_modules if what == "modules" else catalog.add_passing)(passing)
    return min(len(reports) - len(passing), 100)


if __name__ == "__main__":
    sys.exit(main())
