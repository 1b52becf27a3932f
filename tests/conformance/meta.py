"""python -m tests.conformance.meta: which operators give on the Meta backend what they give on the CPU, but the numbers.

python -m tests.conformance.meta                              all of op_db: a line for each that fails, and the totals
python -m tests.conformance.meta --module aten.native.pooling   the operators declared in these files or rooms (several: … …)
python -m tests.conformance.meta --op add nn.functional.conv2d -v     these; -v: each different failure, and the notes
… --samples N (a variant; default 4)   --all-states (a line for the others, too)   --jobs N   --json FILE
… --add-passing (to passing_meta.txt, which only grows; tests/conformance/test_meta.py asks for exactly these)

An operator passes if no form of any sample fails: function, in-place, out= in five sizes, layouts and dtypes, and backward, each on meta
beside the CPU and beside torch on meta; with the tensors laid out as op_db has them, permuted, channels last, expanded and sliced.
Where torch itself raises on meta, ours must raise the same ("refused": torch supports none of its samples).
What reads or writes an element of a meta tensor ends its process: the report says in which function.

Behind the totals stand the operators of the dispatcher that stop the most: those named in the errors.
"""

import argparse
import ast
import collections
import dataclasses
import functools
import json
import os
import pathlib
import re
import sys
import time

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import torch  # noqa: E402  (after the threads are set)

from readtorch.aten import native  # noqa: E402
from readtorch.aten.dispatcher import registry, writers  # noqa: E402
from readtorch.aten.native_function import packets  # noqa: E402
from readtorch.aten.record_function import observe  # noqa: E402
from readtorch.c10.dispatch_key import META  # noqa: E402
from tests.conformance import catalog, checks, known_differences, meta_checks, runner, workers  # noqa: E402
from tests.reference import Outcome, seed_both  # noqa: E402

PASSING = pathlib.Path(__file__).with_name("passing_meta.txt")
SAMPLES_EACH = 4

# Which cases an operator has


def run_cases(job):
    """(label, function that returns findings) for each form of each sample of (name of an operator, number of samples)."""
    name, limit = job
    for info in catalog.variants()[name]:
        for dtype in dtypes_of(info):
            for layout, sample in samples_of(info, dtype, limit):
                short = str(dtype).removeprefix("torch.")
                text = f"{checks.describe(sample)} {layout}".strip()
                for form, case in meta_checks.cases_of(info, sample, dtype):
                    yield (form, short, text), functools.partial(checks.guarded, form, text, case)


def dtypes_of(info):
    """Those of meta_checks.DTYPES, the first of them with all samples; without any, the first that the operator knows."""
    supported = info.supported_dtypes("cpu")
    found = [dtype for dtype in meta_checks.DTYPES if dtype in supported]
    return found or sorted(supported & checks.SUPPORTED_DTYPES, key=str)[:1]


def samples_of(info, dtype, limit):
    """(layout, sample): `limit` samples of the first dtype and one of each other; each in one more layout, the first in all."""
    limit = limit if dtype == dtypes_of(info)[0] else 1
    seed_both(0)
    grad = (
        dtype in meta_checks.GRAD_DTYPES and info.supports_autograd and dtype in info.supported_backward_dtypes("cpu")
    )
    samples = [s for s in info.sample_inputs("cpu", dtype, requires_grad=grad) if checks.is_ours(s)]
    for i, sample in enumerate(runner.spread(samples, limit)):
        yield "", sample
        layouts = list(meta_checks.layouts_of(sample).items())
        yield from layouts[i % len(layouts) :][: 1 if i else None] if layouts else ()


# Where an operator is declared


@functools.cache
def declared():
    """Name of an operator of the dispatcher -> the module that declares it, as "aten.native.pooling.max"."""
    found = schemas_in_files()
    for operator in registry.values():  # the schemas of some are put together from parts, or derived
        base = operator.variant_of or operator
        found.setdefault(operator.name, found.get(base.name) or _module_of(base))
    return found


def schemas_in_files():
    found = {}
    root = pathlib.Path(native.__file__).parents[2]
    for path in sorted((root / "aten" / "native").rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "->" in node.value:
                name = re.match(r"\w+(\.\w+)?(?=\()", node.value)
                if name and f"aten::{name[0]}" in registry:
                    found.setdefault(f"aten::{name[0]}", module)
    return found


def _module_of(operator):
    """Where its functions are."""
    functions = (operator.derivative, operator.composite, *operator.kernels.values())
    modules = [getattr(f, "__module__", "").removeprefix("readtorch.") for f in functions]
    return next((m for m in modules if re.match(r"aten\.native\.(?!cpu|cuda)", m)), "?")


@functools.cache
def module_of(name):
    """Where the operator of op_db is declared: the file of the operator that has its name, else of the first one that it calls."""
    place, _, plain = name.removeprefix("nn.functional.").removeprefix("ops.aten.").rpartition(".")
    place = "nn" if name.startswith("nn.functional.") else place or "torch"
    packet = packets.get((place, plain)) or packets.get(("torch", plain))
    if packet is not None and packet.overloads:
        return declared()[packet.overloads[0].name]
    return declared_under(plain) or declared_under(first_called(name)) or "python"


def declared_under(name):
    """The file of the first operator of the dispatcher that has the name, whatever its overload's; None if there is none."""
    return next((module for full, module in declared().items() if re.split(r"::|\.", full)[1] == name), None)


def first_called(name):
    """The name of the first operator of the dispatcher that a call of the operator of op_db reaches."""
    info = catalog.variants()[name][0]
    samples = [sample for dtype in dtypes_of(info)[:1] for _, sample in samples_of(info, dtype, 1)][:1]
    called = []
    with observe(lambda operator, arguments, result: called.append(operator.__name__)):
        for sample in samples:
            first, rest, named = checks.translate_all((sample.input, sample.args, sample.kwargs))
            Outcome(checks.forms_of(info)[0].ours, first, *rest, **named)
    return called[0] if called else None


def without_meta(modules):
    """The operators declared in these modules of which nothing says what they give on meta."""
    return [
        name
        for name, module in declared().items()
        if in_modules(module, modules) and registry[name].composite is None and not has_meta(registry[name])
    ]


def has_meta(operator):
    return META in operator.kernels or META in writers and writers[META](operator, META) is not None


# What a run found


@dataclasses.dataclass
class Report:
    """What became of one operator."""

    name: str
    module: str
    state: str = ""  # passes, fails, or refused: torch supports none of its samples on meta
    cases: int = 0
    findings: list = dataclasses.field(default_factory=list)

    @property
    def failures(self):
        return [f for f in self.findings if f.kind == "FAIL"]

    @property
    def passes(self):
        return self.state in ("passes", "refused")

    def why(self, kinds=("FAIL",)):
        """The failures, one of each kind, form and beginning of the reason."""
        first = {}
        for finding in self.findings:
            if finding.kind in kinds:
                first.setdefault((finding.kind, finding.form, finding.reason[:60]), finding)
        return list(first.values())


NO_META = re.compile(
    r"(?:raises )?NotImplementedError: (aten::[\w.]+): attempted to run this operator with Meta.*", re.DOTALL
)


def report_of(name, results):
    report = Report(name, module_of(name), cases=len(results))
    supported = 0
    for (form, dtype, sample), found in results:
        if isinstance(found, workers.Ended):
            found = [checks.Finding("FAIL", form, found.how, sample)]
        for finding in found:
            finding.dtype, finding.reason = dtype, NO_META.sub(r"no meta for \1", finding.reason)
        report.findings += found
        supported += form == "function" and all(f.kind != meta_checks.NOT_SUPPORTED for f in found)
    known_differences.explain(name, report.findings)
    report.state = "fails" if report.failures else "passes" if supported else "refused"
    return report


def is_here(name):
    """Whether readtorch has the operator of op_db."""
    return checks.exists(name) and not known_differences.why_left_out(name)


def run(name, worker, limit=SAMPLES_EACH):
    return report_of(name, workers.do(worker, (name, limit)))


def run_all(names, limit=SAMPLES_EACH, jobs=2):
    todo = [(name, limit) for name in names if is_here(name)]
    for (name, _), results in workers.each(todo, run_cases, jobs):
        yield report_of(name, results)


def passing_names():
    return PASSING.read_text().split() if PASSING.exists() else []


def add_passing(names):
    keep = {*passing_names(), *names}
    PASSING.write_text("".join(f"{name}\n" for name in catalog.all_names() if name in keep))


# The command


def parse():
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.meta",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--op", nargs="+", default=[], help="operator names as in op_db")
    parser.add_argument("--module", nargs="+", default=[], help="files or rooms in which they are declared")
    parser.add_argument("--samples", type=int, default=SAMPLES_EACH, help="samples a variant")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--all-states", action="store_true", help="a line for those that pass, too")
    parser.add_argument("-v", "--verbose", action="store_true", help="each different failure, and the notes")
    parser.add_argument("--json", help="write all findings to this file")
    parser.add_argument("--add-passing", action="store_true", help="add those that pass to passing_meta.txt")
    return parser.parse_args()


def chosen_names(options):
    unknown = [name for name in options.op if name not in catalog.variants()]
    if unknown:
        sys.exit(f"not in op_db: {', '.join(unknown)}")
    if options.op or options.module:
        return options.op + [name for name in catalog.all_names() if in_modules(module_of(name), options.module)]
    return catalog.all_names()


def in_modules(module, wanted):
    return any(f"{module}.".startswith(f"{one.removeprefix('readtorch.')}.") for one in wanted)


def print_report(report, verbose, width=170):
    print(f"{report.state:8} {report.name:40} {report.module.removeprefix('aten.native.'):40} {report.cases:4} cases")
    for finding in report.why() if verbose else report.why()[:1]:
        reason = " ".join(finding.reason.split())
        print(f"         {finding.form} {finding.dtype}: {reason if verbose else reason[:width]}")
        print(f"             {finding.sample[:width]}")
        if verbose and finding.trace:
            print("             " + finding.trace.replace("\n", "\n             "))
    for finding in report.why(meta_checks.NOTES) if verbose else ():
        print(
            f"         note: {finding.kind} {finding.form} {finding.dtype} {finding.sample[:60]}: {finding.reason[:width]}"
        )
    sys.stdout.flush()


def stoppers(reports):
    """Operator of the dispatcher -> the operators of op_db whose errors name it."""
    found = collections.defaultdict(set)
    for report in reports:
        for finding in report.failures:
            for full in re.findall(r"aten::\w+(?:\.\w+)?", finding.reason):
                found[full.rstrip(".")].add(report.name)
    return found


def print_totals(reports, options, seconds):
    counts = collections.Counter(report.state for report in reports)
    supported = counts["passes"] + counts["fails"]
    rooms = collections.defaultdict(collections.Counter)
    for report in reports:
        rooms[report.module][report.state] += 1
    if len(rooms) > 1:
        print("\npasses  fails  by file")
        for module, states in sorted(rooms.items()):
            print(f"{states['passes'] + states['refused']:6} {states['fails']:6}  {module}")
    worst = sorted(stoppers(reports).items(), key=lambda item: -len(item[1]))
    if worst:
        print("\nnamed in errors: operator, where it is declared, in how many operators of op_db")
    for name, stopped in worst if options.verbose or options.module else worst[:25]:
        if not options.module or in_modules(declared().get(name, "?"), options.module):
            some = ", ".join(sorted(stopped)[:4])
            print(f"  {name:42} {declared().get(name, '?').removeprefix('aten.native.'):40} {len(stopped):4}  {some}")
    if options.module:
        print(
            f"\ndeclared here, nothing says what they give on meta: {', '.join(without_meta(options.module)) or 'none'}"
        )
    print(
        f"\n{len(reports)} operators of op_db: {counts['passes']} of {supported} pass on meta, {counts['fails']} fail, "
        f"{counts['refused']} are refused as by torch; {sum(r.cases for r in reports)} cases, {seconds:.0f} s"
    )


def main():
    options = parse()
    torch.set_num_threads(1)
    began = time.perf_counter()
    names = chosen_names(options)
    absent = [name for name in names if not is_here(name)]
    reports = []
    for report in run_all(names, options.samples, options.jobs):
        reports.append(report)
        if options.all_states or options.op or options.verbose or report.state == "fails":
            print_report(report, options.verbose)
    if absent:
        print(f"\nleft out of readtorch: {', '.join(absent)}")
    print_totals(reports, options, time.perf_counter() - began)
    if options.json:
        with open(options.json, "w") as file:
            json.dump([dataclasses.asdict(report) for report in reports], file, indent=1)
    if options.add_passing:
        add_passing([report.name for report in reports if report.passes])
    return min(sum(not report.passes for report in reports), 100)


if __name__ == "__main__":
    sys.exit(main())
