"""The optimizers' steps as operators on lists, beside the reference: each list of state has its part, for every setting."""

import itertools

import pytest

from tests.programs import same

SIZES = (3, 1, 0, 700, 5000)


def lists(T, count, dtype):
    """`count` lists of tensors, all of them different."""
    return [
        [((T.arange(size) * (7 + k) % 13) / 13 + 0.1 * (k + 1)).to(getattr(T, dtype)) for size in SIZES]
        for k in range(count)
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["_fused_adam_", "_fused_adamw_"])
def test_adam(name, dtype):
    def program(T, show):
        for amsgrad, maximize, decay in itertools.product((False, True), (False, True), (0.0, 0.1)):
            params, grads, first, second, largest = lists(T, 5, dtype)
            steps = [T.tensor(float(i + 1)) for i in range(len(SIZES))]
            getattr(T.ops.aten, name).default(
                params,
                grads,
                first,
                second,
                largest if amsgrad else [],
                steps,
                lr=0.1,
                beta1=0.8,
                beta2=0.9,
                weight_decay=decay,
                eps=1e-3,
                amsgrad=amsgrad,
                maximize=maximize,
            )
            show.numbers(*params, *grads, *first, *second, *largest, *steps)

    same(program, rtol=2e-5)


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-6), ("float64", 1e-6), ("bfloat16", 1e-2), ("float16", 2e-3)])
def test_adagrad(dtype, rtol):
    """In 16 bits PyTorch rounds the settings, too, but for the last elements of a tensor."""

    def program(T, show):
        for maximize, decay, scale in itertools.product((False, True), (0.0, 0.1), (None, 4.0)):
            params, grads, sums = lists(T, 3, dtype)
            T.ops.aten._fused_adagrad_.default(
                params,
                grads,
                sums,
                [T.tensor(float(i + 1)) for i in range(len(SIZES))],
                lr=0.1,
                lr_decay=0.3,
                weight_decay=decay,
                eps=1e-3,
                maximize=maximize,
                grad_scale=None if scale is None else T.tensor(scale),
                found_inf=T.tensor(0.0),
            )
            show.numbers(*[t.double() for t in (*params, *grads, *sums)])
        params, grads, sums = lists(T, 3, dtype)
        settings = dict(lr=0.1, lr_decay=0.0, weight_decay=0.0, eps=1e-3, maximize=False, found_inf=T.tensor(1.0))
        T.ops.aten._fused_adagrad_.default(params, grads, sums, [T.tensor(1.0)] * len(SIZES), **settings)
        show.numbers(*[t.double() for t in (*params, *grads, *sums)])

    same(program, rtol=rtol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sgd(dtype):
    def program(T, show):
        for momentum, nesterov, maximize, is_first, decay in itertools.product(
            (0.0, 0.9), (False, True), (False, True), (False, True), (0.0, 0.1)
        ):
            params, grads, buffers = lists(T, 3, dtype)
            T.ops.aten._fused_sgd_.default(
                params,
                grads,
                buffers if momentum else [],
                weight_decay=decay,
                momentum=momentum,
                lr=0.1,
                dampening=0.25,
                nesterov=nesterov and momentum > 0,
                maximize=maximize,
                is_first_step=is_first,
            )
            show.numbers(*params, *grads, *buffers)

    same(program, rtol=2e-5)
