"""What schedulers write into an optimizer's group: alone, together, one after another, and after a break (the chapter
"Schedulers and SWA").

The numbers come from readtorch's schedulers, run for real; JavaScript has formulas of its own.
In PyTorch: `torch/optim/lr_scheduler.py`. `tests/viz/test_learning_rates.py` runs the same programs there.
"""

import ast
import copy
import warnings
from dataclasses import dataclass

import readtorch
from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Expression, Integer, Integers, Number, Refusal, Switch
from readtorch.viz.picture import box, drawing, tag, text

MOST = 3  # schedulers in a program
REQUIRED = object()


@dataclass(frozen=True)
class Argument:
    """An argument of a constructor. whole: whether it must be a whole number; many: whether it is a list of them."""

    name: str
    low: float
    high: float
    default: object = REQUIRED
    whole: bool = False
    many: bool = False

    def check(self, scheduler, value):
        values = value if self.many and isinstance(value, list) else [value]
        if isinstance(value, list) != self.many or not all(map(self.is_good, values)):
            kind = "whole number" if self.whole else "number"
            form = f"a list of {kind}s" if self.many else f"a {kind}"
            raise Refusal(f"{self.name} of {scheduler} takes {form} from {self.low} to {self.high:,} here.")

    def is_good(self, value):
        return self.low <= value <= self.high and (not self.whole or type(value) is int)


def count(name, default=REQUIRED):
    return Argument(name, 1, 1000, default, whole=True)


GAMMA, FLOOR = Argument("gamma", 0, 2, 0.1), Argument("eta_min", 0, 10, 0.0)
SCHEDULERS = {
    "StepLR": (count("step_size"), GAMMA),
    "MultiStepLR": (Argument("milestones", 1, 1000, whole=True, many=True), GAMMA),
    "ConstantLR": (Argument("factor", 0, 10, 1 / 3), count("total_iters", 5)),
    "LinearLR": (Argument("start_factor", 0, 10, 1 / 3), Argument("end_factor", 0, 10, 1.0), count("total_iters", 5)),
    "ExponentialLR": (Argument("gamma", 0, 2),),
    "PolynomialLR": (count("total_iters", 5), Argument("power", 0, 10, 1.0)),
    "CosineAnnealingLR": (count("T_max"), FLOOR),
    "CosineAnnealingWarmRestarts": (count("T_0"), count("T_mult", 1), FLOOR),
}
PROGRAMS = (
    "LinearLR(0.25, total_iters=4); CosineAnnealingLR(12)",
    "ExponentialLR(0.9); StepLR(6, 0.5)",
    "LinearLR(0.2, total_iters=4); ConstantLR(1, total_iters=1); LinearLR(1, 0, total_iters=8)",
    "CosineAnnealingWarmRestarts(4, T_mult=2)",
    "MultiStepLR([3, 9, 9], gamma=0.5)",
    "PolynomialLR(12, power=2); ConstantLR(0.5, 6)",
    "StepLR(step_size=5)",
    "CosineAnnealingLR(6, 0.1)",
    "ConstantLR(0, 3)",
    "LinearLR(0)",
    "ExponentialLR(0.5); ExponentialLR(0.9)",
    "CosineAnnealingLR(4, 0.1); ExponentialLR(0.5)",
)
WAYS = {
    "both": "make scheduler, load both",
    "before": "load optimizer, make scheduler, load it",
    "unloaded": "load optimizer, make scheduler",
    "forgotten": "make scheduler, load it, forget the optimizer",
    "last_epoch": "load optimizer, make with last_epoch",
}


# ---- reading the program


def read_program(code):
    """[(the name of a scheduler, its arguments by name)]. Raises Refusal."""
    pieces = [piece.strip() for piece in code.split(";") if piece.strip()]
    if not 1 <= len(pieces) <= MOST:
        raise Refusal(f"The program is one to {MOST} schedulers, with semicolons between them.")
    return [read_call(piece) for piece in pieces]


def read_call(piece):
    try:
        call = ast.parse(piece, mode="eval").body
    except (SyntaxError, ValueError):
        call = None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise Refusal(f"“{piece}” is no call such as StepLR(5, gamma=0.5): leave out the module and the optimizer.")
    name = call.func.id
    if name not in SCHEDULERS:
        raise Refusal(f"There is no {name} here. There are {', '.join(SCHEDULERS)}.")
    arguments = SCHEDULERS[name]
    if len(call.args) > len(arguments):
        raise Refusal(f"{name} takes at most {len(arguments)} arguments here.")
    given = [*zip((one.name for one in arguments), call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
    values = {}
    for argument, value in given:
        if argument not in [one.name for one in arguments]:
            raise Refusal(f"{name} has no argument {argument} here.")
        if argument in values:
            raise Refusal(f"{name} got {argument} twice.")
        values[argument] = read_value(piece, value)
    for one in arguments:
        if one.name not in values and one.default is REQUIRED:
            raise Refusal(f"{name} needs {one.name}.")
        one.check(name, values.setdefault(one.name, one.default))
    return name, values


def read_value(piece, value):
    """A number or a list of numbers."""
    try:
        value = ast.literal_eval(value)
    except ValueError:
        value = None
    numbers = value if isinstance(value, list) else [value]
    if not all(type(number) in (int, float) for number in numbers) or (isinstance(value, list) and not value):
        raise Refusal(f"The arguments in “{piece}” are numbers, or a list of numbers.")
    return value


# ---- running it


def new_optimizer(lib, lr):
    return lib.optim.SGD([lib.nn.Parameter(lib.zeros(1))], lr=lr)


def make(lib, inputs, optimizer, last_epoch=-1):
    """(the scheduler of the program, [[who was made, the rate that it left]])."""
    L, made, trail = lib.optim.lr_scheduler, [], []
    rate = lambda: optimizer.param_groups[0]["lr"]  # noqa: E731
    for name, values in read_program(inputs["program"]):
        made.append(getattr(L, name)(optimizer, **values, last_epoch=last_epoch))
        trail.append([name, rate()])
    if len(made) == 1:
        return made[0], trail
    if inputs["how"] == "sequential":
        together = L.SequentialLR(optimizer, made, list(inputs["milestones"]), last_epoch)
    else:
        together = L.ChainedScheduler(made, optimizer)
    return together, [*trail, [type(together).__name__, rate()]]


def run(optimizer, scheduler, epochs, scheduler_first=False):
    """The rate of each optimizer.step()."""
    used = []
    for _ in range(epochs):
        if scheduler_first:
            scheduler.step()
        used.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if not scheduler_first:
            scheduler.step()
    return used


def resumed(lib, inputs):
    """(the rates with a break, what wrote the rate after it): saved, and made and loaded again in the chosen way."""
    optimizer, way = new_optimizer(lib, inputs["lr"]), inputs["way"]
    scheduler, _ = make(lib, inputs, optimizer)
    used = run(optimizer, scheduler, inputs["stop"], inputs["early"])
    saved = copy.deepcopy([optimizer.state_dict(), scheduler.state_dict()])
    optimizer = new_optimizer(lib, inputs["lr"])
    again, rate = [], lambda: optimizer.param_groups[0]["lr"]
    if way in ("before", "unloaded", "last_epoch"):
        optimizer.load_state_dict(saved[0])
        again.append(["optimizer loaded", rate()])
    scheduler, trail = make(lib, inputs, optimizer, inputs["stop"] - 1 if way == "last_epoch" else -1)
    again += trail
    if way == "both":
        optimizer.load_state_dict(saved[0])
        again.append(["optimizer loaded", rate()])
    if way in ("both", "before", "forgotten"):
        scheduler.load_state_dict(saved[1])
    return used + run(optimizer, scheduler, inputs["epochs"] - inputs["stop"], inputs["early"]), again


def computed(inputs, lib=readtorch):
    """(the unbroken rates, those with a break or None, what wrote the rate after the break, what was made)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimizer = new_optimizer(lib, inputs["lr"])
        scheduler, trail = make(lib, inputs, optimizer)
        rates = run(optimizer, scheduler, inputs["epochs"], inputs["early"])
        return rates, *(resumed(lib, inputs) if inputs["stop"] else (None, [])), trail


def model(inputs):
    program = read_program(inputs["program"])
    if 0 < inputs["epochs"] <= inputs["stop"]:
        raise Refusal("The break comes before the last epoch, or there is none: 0.")
    if len(program) > 1 and inputs["how"] == "sequential" and sorted(set(inputs["milestones"])) != inputs["milestones"]:
        raise Refusal("Milestones go up: each is a later epoch than the one before.")
    try:
        rates, broken, again, trail = computed(inputs)
    except (ValueError, ZeroDivisionError) as error:
        raise Refusal(f"PyTorch raises {type(error).__name__}: {error}") from None
    wrong = [t for t, (x, y) in enumerate(zip(broken or rates, rates, strict=True)) if abs(x - y) > 1e-9]
    at = min(inputs["at"], inputs["epochs"])
    say = sentence(inputs, program, rates, broken, wrong)
    return {"rates": rates, "broken": broken, "wrong": wrong, "made": trail, "again": again, "at": at, "say": say}


def sentence(inputs, program, rates, broken, wrong):
    names = (", then " if inputs["how"] == "sequential" else " and ").join(name for name, _ in program)
    top = max(range(len(rates)), key=lambda t: round(rates[t], 9))
    last = len(rates) - 1
    first_words = ", its highest," if top == 0 else ""
    last_words = ", its highest" if top == last > 0 else ""
    peak = "" if top in (0, last) else f", at its highest, {short(rates[top])}, in epoch {top + 1},"
    say = f"{names}: the rate is {short(rates[0])} in epoch 1{first_words}{peak} and {short(rates[last])} in epoch {last + 1}{last_words}."
    if inputs["early"]:
        say += " The scheduler steps before the optimizer: PyTorch warns once, and the first rate is never used."
    below = next((t for t, rate in enumerate(rates) if rate < -1e-12), None)
    if below is not None:
        say += f" It is negative for the first time in epoch {below + 1}: such a step climbs."
    if broken:
        after, verb = inputs["epochs"] - inputs["stop"], "is" if len(wrong) == 1 else "are"
        say += f" After the break {f'{len(wrong)} of {after} rates {verb} wrong' if wrong else 'every rate is right'}."
    return say


def short(x):
    """Three digits: 0.8, 0.0133, 3.1e-05."""
    return f"{x * (1 + 1e-9):.3g}" if abs(x) >= 1e-12 else "0"  # a half goes up, as in JavaScript


def picture(result, step):
    rates, broken = result["rates"], result["broken"]
    low, high = min([*rates, *(broken or []), 0]), max([*rates, *(broken or []), 1e-12])

    def stairs(values, class_):
        width, y = 350 / len(values), [160 - 140 * (value - low) / (high - low) for value in values]
        d = "".join(
            f"{'L' if i else 'M'}{30 + width * i:.1f} {v:.1f}H{30 + width * (i + 1):.1f}" for i, v in enumerate(y)
        )
        return tag("path", d=d, class_=f"{class_} bare")

    parts = [stairs(rates, "pale"), *([stairs(broken, "gold")] if broken else [])]
    words = "blue: the rate of each epoch" + ("; dashed gold: after the break" if broken else "")
    return drawing(
        400, 190, box(30, 10, 350, 150, "free"), *parts, text(words, 30, 180, "dim"), text(short(high), 2, 24, "dim")
    )


def sample(random):
    program = random.choice(PROGRAMS)
    count, how = program.count(";"), random.choice(["chained", "sequential"])
    milestones = sorted(random.sample(range(1, 30), count if random.random() < 0.9 else 2))
    epochs = random.randint(2, 60)
    stop = random.choice([0, random.randint(1, epochs - 1)])
    return {"program": program, "how": how, "milestones": milestones, "epochs": epochs, "stop": stop}


FIGURE = Figure(
    name="learning_rates",
    title="The rate that each step uses",
    inputs=(
        Expression("program", "schedulers", PROGRAMS[0], 200, PROGRAMS),
        Choice("how", "run", "sequential", options={"sequential": "one after another: SequentialLR", "chained": "all at once: ChainedScheduler"}),
        Integers("milestones", "milestones", [4], low=1, high=200, longest=MOST - 1, only=("how", "sequential")),
        Number("lr", "lr", 0.8, low=0.000001, high=10),
        Integer("epochs", "epochs", 16, low=1, high=100),
        Integer("stop", "break after", 0, low=0, high=99, hint="0: the training goes on without a break"),
        Choice("way", "resumed by", "both", options=WAYS),
        Switch("early", "scheduler.step() first", False),
        Switch("log", "logarithmic", False),
        Integer("at", "epoch", 4, low=1, high=100, hidden=True),
    ),
    model=model,
    picture=picture,
    hint="← and → go through the epochs.",
    sample=sample,
)  # fmt: skip
