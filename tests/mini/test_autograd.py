"""`readtorch.mini.autograd` computes PyTorch's gradients: on random programs of products, views and writes."""

import gc
import random
import weakref

import pytest
import torch

from readtorch.mini.autograd import Tensor, exp, gradient_edge, log, matmul, no_grad


def leaves(kind):
    values = [[[0.5, 1.0], [1.5, 0.25]], [0.75, 1.25], [[2.0], [0.5]]]
    if kind is torch:
        return [torch.tensor(v, requires_grad=True) for v in values]
    return [Tensor.of(v).requires_grad_() for v in values]


def program(kind, seed):
    """A random program on three leaves of the shapes (2, 2), (2,) and (2, 1): their gradients, or the word of an error."""
    pool = leaves(kind)
    try:
        result = compute(kind, pool, random.Random(seed))
        if result is None:
            return None
        result.backward(torch.ones(2, 2) if kind is torch else None)
    except RuntimeError as error:
        return "version" if "version" in str(error) else "leaf"
    return [leaf.grad for leaf in pool[:3]]


def compute(kind, pool, draw):
    """The last of some results, each made of tensors of the pool; the pool grows."""
    exponential, product = (torch.exp, torch.matmul) if kind is torch else (exp, matmul)
    results = []
    for _ in range(draw.randint(3, 9)):
        a, b = draw.choice(pool), draw.choice([t for t in pool if tuple(t.shape) == (2, 2)])
        step = draw.randrange(7)
        if step == 0:
            made = b * a
        elif step == 1:
            made = b + a
        elif step == 2:
            made = exponential(b * 0.125)
        elif step == 3:
            made = b.transpose(0, 1)
        elif step == 4:
            made = product(b, b.transpose(0, 1)) * 0.125
        elif results:
            made = draw.choice(results)
            part = made[draw.randrange(2)] if draw.random() < 0.5 else made
            if step == 5:
                part *= 0.5
            else:
                part += pool[1]
        else:
            continue
        pool.append(made)
        results.append(made)
    return results[-1] if results else None


@pytest.mark.parametrize("seed", range(150))
def test_random_programs(seed):
    wanted, found = program(torch, seed), program(Tensor, seed)
    if not isinstance(wanted, list):
        assert found == wanted
        return
    for theirs, ours in zip(wanted, found, strict=True):
        assert (theirs is None) == (ours is None)
        if theirs is not None:
            torch.testing.assert_close(torch.tensor(ours.tolist()), theirs)


def test_nodes_run_last_made_first_and_a_leaf_at_once():
    x, w = Tensor.of([1.0]).requires_grad_(), Tensor.of([2.0]).requires_grad_()
    order = []
    a, b = x * w, exp(x)
    c = a * b
    for name, t in zip("xwabc", (x, w, a, b, c)):
        t.register_hook(lambda grad, name=name: order.append(name))
    c.backward()
    assert "".join(order) == "cbawx" or "".join(order) == "cbaxw"


def test_a_second_walk_needs_what_was_saved():
    x = Tensor.of([1.0]).requires_grad_()
    (x + 1.0).backward()
    y = exp(x)
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_a_leaf_is_not_written_to():
    x = Tensor.of([1.0, 2.0]).requires_grad_()
    for t in (x, x[:1]):
        with pytest.raises(RuntimeError, match="leaf"):
            t *= 2.0
    with no_grad():
        x *= 2.0
    assert x.tolist() == [2, 4]


def test_a_leaf_holds_its_node_weakly():
    x = Tensor.of([1.0]).requires_grad_()
    y = log(x)
    node = weakref.ref(gradient_edge(x))
    assert y.grad_fn.next_edges == [node()]
    del y
    gc.collect()
    assert node() is None


def test_a_saved_result_makes_no_cycle():
    x = Tensor.of([1.0]).requires_grad_()
    gc.disable()
    try:
        y = exp(x)
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()
