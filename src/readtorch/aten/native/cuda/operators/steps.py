"""Whole optimizer steps over lists of tensors in a few launches.

In PyTorch: `aten/src/ATen/native/cuda/{FusedAdamKernel,FusedSgdKernel}.cu`, `ForeachBinaryOpScalar.cu`.
"""

from collections import defaultdict

from .....c10.memory_format import contiguous_format
from .. import foreach as kernels
from .copies import clone_cuda, copy_elements
from .pointwise import operator_named
from .registration import cuda_kernel


class InOrder:
    """Lists of tensors as contiguous arrays; what had to be laid out is written back when the step is
    done."""

    def __init__(self, *lists):
        self.originals = lists
        self.laid_out = [[self._laid_out(t) for t in tensors] for tensors in lists]

    @staticmethod
    def _laid_out(t):
        return t if t._array.flags.c_contiguous else clone_cuda(t, contiguous_format)

    def __enter__(self):
        return [[t._array for t in tensors] for tensors in self.laid_out]

    def __exit__(self, kind, *exception):
        if kind is not None:
            return
        for tensors, laid_out in zip(self.originals, self.laid_out):
            for t, copy in zip(tensors, laid_out):
                if t is not copy:
                    copy_elements(copy, t)


def changed(*lists):
    for tensors in lists:
        for t in tensors:
            t._counter[0] += 1


@cuda_kernel(operator_named("_foreach_add_.Scalar"))
def foreach_add_cuda_(tensors, scalar):
    for t in tensors:
        t.add_(scalar)


def refuse_scaling(grad_scale, found_inf):
    if grad_scale is not None or found_inf is not None:
        raise RuntimeError("readtorch's fused optimizers have no grad_scale and found_inf on CUDA")


def adam(decoupled):
    def kernel(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        lr,
        beta1,
        beta2,
        weight_decay,
        eps,
        amsgrad,
        maximize,
        grad_scale,
        found_inf,
    ):
        refuse_scaling(grad_scale, found_inf)
        lists = [params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else []]
        for step, places in by_step(params, state_steps).items():
            chosen = [[tensors[i] for i in places] if tensors else [] for tensors in lists]
            with InOrder(*chosen) as (p, g, m, v, greatest):
                kernels.adam(
                    p,
                    g,
                    m,
                    v,
                    greatest or None,
                    step[0],
                    lr,
                    beta1,
                    beta2,
                    eps,
                    weight_decay,
                    decoupled,
                    maximize,
                )
        changed(params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else [])

    return kernel


def by_step(params, state_steps):
    """(step, dtype) -> which tensors are at it: usually all at one. A step on the device is fetched."""
    places = defaultdict(list)
    for i, (param, step) in enumerate(zip(params, state_steps)):
        places[step.item(), param._array.dtype].append(i)
    return places


cuda_kernel(operator_named("_fused_adam_"))(adam(decoupled=False))
cuda_kernel(operator_named("_fused_adamw_"))(adam(decoupled=True))


@cuda_kernel(operator_named("_fused_sgd_"))
def fused_sgd_cuda_(
    params,
    grads,
    momentum_buffer_list,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
    is_first_step,
    grad_scale,
    found_inf,
):
    refuse_scaling(grad_scale, found_inf)
    kinds = defaultdict(list)
    for i, param in enumerate(params):
        kinds[param._array.dtype].append(i)
    for places in kinds.values():
        chosen = [
            [tensors[i] for i in places] if tensors else []
            for tensors in (params, grads, momentum_buffer_list)
        ]
        with InOrder(*chosen) as (p, g, buffers):
            kernels.sgd(
                p,
                g,
                buffers or None,
                lr,
                weight_decay,
                momentum,
                dampening,
                nesterov,
                maximize,
                is_first_step,
            )
    changed(params, momentum_buffer_list)
