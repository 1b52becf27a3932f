"""`_lazy_clone`: storages that share their memory until one of them is written to. Both sides run the same programs."""

import copy
import io

import numpy as np
import pytest
import torch

import readtorch

BOTH = (torch, readtorch)


def a_tensor(T):
    return T.tensor([[0.0, 1.0], [2.0, 3.0]])


# What reads, what writes to the clone `c`, and what only hands out its address.
USES = {
    "reads": lambda T, c: (
        c + 1,
        c.sum(),
        c[0].tolist(),
        repr(c),
        copy.deepcopy(c),
        c.clone(),
        c.detach(),
        c.contiguous(),
    ),
    "views": lambda T, c: (
        c.view(4),
        c.t(),
        c[0],
        c.data,
        c.as_strided((2,), (1,)),
        c.view(T.int32),
        T.empty(0).set_(c),
    ),
    "reads_storage": lambda T, c: (c.untyped_storage()[0], c.untyped_storage().tolist(), c.untyped_storage().clone()),
    "resizes_within": lambda T, c: c.resize_(3),
    "another_geometry": lambda T, c: c.t_(),
    "const_data_ptr": lambda T, c: c.const_data_ptr(),
    "adds": lambda T, c: c.add_(1),
    "sets_item": lambda T, c: c.__setitem__(0, 7.0),
    "out": lambda T, c: T.mul(T.ones(2, 2), 7, out=c),
    "copies": lambda T, c: c.copy_(T.ones(2, 2)),
    "draws": lambda T, c: c.uniform_(5, 6),
    "foreach": lambda T, c: T._foreach_add_([T.zeros(1), c], 1),
    "of_a_view": lambda T, c: c.view(4)[1:].fill_(7),
    "of_a_detached": lambda T, c: c.detach().mul_(2),
    "of_data": lambda T, c: c.data.zero_(),
    "of_a_parameter": lambda T, c: T.nn.Parameter(c, requires_grad=False).neg_(),
    "of_other_bits": lambda T, c: c.view(T.int32).fill_(1),
    "of_set": lambda T, c: T.empty(0).set_(c).fill_(7),
    "of_set_storage": lambda T, c: T.empty(0).set_(c.untyped_storage(), 0, (2,), (1,)).fill_(7),
    "of_set_data": lambda T, c: set_data(T, c),
    "of_unsafe_view": lambda T, c: T.ops.aten._unsafe_view(c, [4]).fill_(7),
    "of_real": lambda T, c: T.view_as_real(T.view_as_complex(c).mul_(2j)).fill_(7),
    "of_sparse_values": lambda T, c: T.sparse_coo_tensor([[0, 1]], c, check_invariants=True)._values().fill_(7),
    "in_place_gradient": lambda T, c: (c * T.ones(2, 2, requires_grad=True)).sum().backward(),
    "accumulates": lambda T, c: accumulates(T, c),
    "optimizes": lambda T, c: optimizes(T, c),
    "norm": lambda T, c: T.nn.BatchNorm1d(2).train()(c),
    "running": lambda T, c: T.nn.functional.batch_norm(T.ones(3, 2), c[0], c[1], training=True),
    "scatters": lambda T, c: c.scatter_(0, T.tensor([[1, 0]]), 7.0),
    "puts": lambda T, c: c.index_put_((T.tensor([0]),), T.tensor(7.0)),
    "masks": lambda T, c: c.masked_fill_(c > 1, 7),
    "sorts": lambda T, c: T.sort(T.ones(4), out=(c.view(4), T.empty(4, dtype=T.int64))),
    "multiplies": lambda T, c: T.mm(T.ones(2, 2), T.ones(2, 2), out=c),
    "clamps": lambda T, c: c.clamp_(1, 2),
    "splits": lambda T, c: c.split(1)[0].fill_(7),
    "embeds": lambda T, c: T.nn.functional.embedding(T.tensor([0]), c, max_norm=0.1),
    "from_apply": lambda T, c: c.apply_(lambda x: 7.0),
    "vmaps": lambda T, c: T.vmap(lambda x: x.add_(1))(c),
    "inference": lambda T, c: inference(T, c),
    "data_ptr": lambda T, c: c.data_ptr(),
    "numpy": lambda T, c: c.numpy().fill(7),
    "array": lambda T, c: np.asarray(c).fill(7),
    "dlpack": lambda T, c: np.from_dlpack(c),
    "of_a_slice_of_set": lambda T, c: T.empty(0).set_(c)[0].fill_(7),
    "shares": lambda T, c: c.share_memory_(),
    "storage_data_ptr": lambda T, c: c.untyped_storage().data_ptr(),
    "storage_fill": lambda T, c: c.untyped_storage().fill_(0),
    "storage_set_item": lambda T, c: c.untyped_storage().__setitem__(0, 1),
    "storage_copy": lambda T, c: c.untyped_storage().copy_(T.ones(4).untyped_storage()),
    "storage_resize": lambda T, c: c.untyped_storage().resize_(4),
    "storage_byteswap": lambda T, c: c.untyped_storage()._byteswap(4),
}


def set_data(T, c):
    x = T.empty(3)
    x.data = c
    x.fill_(7)


def accumulates(T, c):
    x = T.ones(2, 2, requires_grad=True)
    x.grad = c
    (x * 3).sum().backward()


def optimizes(T, c):
    p = T.nn.Parameter(c)
    p.grad = T.ones(2, 2)
    T.optim.SGD([p], 0.1, foreach=False).step()
    T.optim.Adam([p], 0.1, foreach=True).step()
    T.optim.Adam([p], 0.1, fused=True).step()


def inference(T, c):
    with T.inference_mode():
        c.add_(1)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("of_the_clone", [True, False])
def test_a_write_copies(use, of_the_clone):
    def told(T):
        T.manual_seed(0)
        t = a_tensor(T)
        view = t[1]
        c = t._lazy_clone()
        USES[use](T, c if of_the_clone else t)
        marks = [T._C._is_cow_tensor(x) for x in (t, view, c)]
        same = T._C._data_address(t) == T._C._data_address(c)
        other = t if of_the_clone else c
        return marks, same, other.tolist(), other._version, (c if of_the_clone else t).shape

    assert told(readtorch) == told(torch)


def test_the_last_one_keeps_the_memory():
    def told(T):
        t = a_tensor(T)
        place = T._C._data_address(t)
        storages = [T._C._storage_address(t)]
        a, b = t._lazy_clone(), t._lazy_clone()._lazy_clone()
        steps = []
        for x in (a, t, b):
            x += 1
            storages.append(T._C._storage_address(x))
            steps.append([(T._C._is_cow_tensor(y), T._C._data_address(y) == place, y.tolist()) for y in (t, a, b)])
        return steps, len(set(storages))

    assert told(readtorch) == told(torch)


def test_a_clone_that_is_gone_has_no_say():
    def told(T):
        t = a_tensor(T)
        place = T._C._data_address(t)
        t._lazy_clone()
        t += 1
        return T._C._is_cow_tensor(t), T._C._data_address(t) == place

    assert told(readtorch) == told(torch) == (False, True)


def test_gradients_and_what_it_refuses():
    def told(T):
        t = a_tensor(T).requires_grad_()
        c = t._lazy_clone()
        (c * c).sum().backward()
        facts = [
            c.grad_fn.name(),
            t.grad.tolist(),
            c.is_leaf,
            t[:, 1]._lazy_clone().stride(),
            T.ones(2, dtype=T.cfloat).conj(),
        ]
        facts += [T._lazy_clone(T.ones(2, device="meta")).shape, T.empty(0)._lazy_clone().shape]
        shared = T.ones(3).share_memory_()
        for x in (T.from_numpy(np.ones(3)), shared):
            with pytest.raises(RuntimeError) as refused:
                x._lazy_clone()
            facts.append(str(refused.value))
        buffer = io.BytesIO()
        T.save(a_tensor(T)._lazy_clone(), buffer)
        buffer.seek(0)
        return repr([*facts, T.load(buffer).tolist()])

    assert told(readtorch) == told(torch)
