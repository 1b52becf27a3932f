"""`torch.library.opcheck` on operators with faults: which test finds which, and what it says."""

import torch
from torch import Tensor
from torch.library import custom_op, opcheck


@custom_op("lockstep_check::good", mutates_args=())
def good(x: Tensor, factor: float) -> Tensor:
    return x * factor


good.register_fake(lambda x, factor: torch.empty_like(x))
good.register_autograd(
    lambda ctx, gradient: (gradient * ctx.factor, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]),
)


@custom_op("lockstep_check::no_fake", mutates_args=())
def no_fake(x: Tensor) -> Tensor:
    return x.exp()


@custom_op("lockstep_check::wrong_shape", mutates_args=())
def wrong_shape(x: Tensor) -> Tensor:
    return x.sum(0)


wrong_shape.register_fake(lambda x: torch.empty_like(x))


@custom_op("lockstep_check::wrong_type", mutates_args=())
def wrong_type(x: Tensor) -> Tensor:
    return (x > 0).to(torch.int64)


wrong_type.register_fake(lambda x: torch.empty_like(x))


@custom_op("lockstep_check::writes", mutates_args=())
def writes(x: Tensor) -> Tensor:
    x.add_(1)
    return x * 2


writes.register_fake(lambda x: torch.empty_like(x))

lib = torch.library.Library("lockstep_check_low", "DEF")
lib.define("same(Tensor x) -> Tensor")
lib.impl("same", lambda x: x, "CompositeExplicitAutograd")
lib.define("no_formula(Tensor x) -> Tensor")
lib.impl("no_formula", lambda x: x.detach().exp(), "CPU")
lib.impl("no_formula", lambda x: torch.empty_like(x), "Meta")


TESTS = ("test_schema", "test_autograd_registration", "test_faketensor")
CASES = [
    ("good", good, (torch.randn(3), 2.0), {}),
    ("good with gradient", good, (torch.randn(3, requires_grad=True), 2.0), {}),
    ("good by name", good, (torch.randn(2, 2),), {"factor": 0.5}),
    ("no fake kernel", no_fake, (torch.randn(3),), {}),
    ("wrong shape", wrong_shape, (torch.randn(2, 3),), {}),
    ("wrong type", wrong_type, (torch.randn(3),), {}),
    ("writes to its input", writes, (torch.randn(3),), {}),
    ("returns its input", torch.ops.lockstep_check_low.same.default, (torch.randn(3),), {}),
    ("no formula", torch.ops.lockstep_check_low.no_formula.default, (torch.randn(3, requires_grad=True),), {}),
    ("of PyTorch", torch.ops.aten.sin.default, (torch.randn(3, requires_grad=True),), {}),
]
for what, op, args, kwargs in CASES:
    results = opcheck(op, args, kwargs, test_utils=TESTS, raise_exception=False)
    print(
        f"{what:<20}",
        {name.removeprefix("test_"): r if isinstance(r, str) else type(r).__name__ for name, r in results.items()},
    )
for test in TESTS:
    for what, op, args, kwargs in CASES:
        try:
            opcheck(op, args, kwargs, test_utils=test)
        except Exception as error:
            print(f"{test:<27} {what:<20} {type(error).__name__}: {str(error).splitlines()[0].split(': ')[0][:90]}")
for wrong in (
    lambda: opcheck(good, (torch.randn(3), 2.0), test_utils="test_everything"),
    lambda: opcheck(torch.sin, (torch.randn(3),)),
):
    try:
        wrong()
    except (ValueError, AssertionError, AttributeError, TypeError) as error:
        print(type(error).__name__, str(error).splitlines()[0][:60])
x = torch.randn(3)
kept = x.clone()
opcheck(good, (x, 3.0), test_utils=TESTS)
print("inputs are left alone", torch.equal(x, kept), x._version)
