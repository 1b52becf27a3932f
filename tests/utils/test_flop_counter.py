"""`FlopCounterMode`: the same counts, module by module, and the same table as PyTorch's."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils import flop_counter as theirs
from torch.utils import module_tracker as their_tracker

import readtorch as rt
from readtorch.utils import flop_counter as ours
from readtorch.utils import module_tracker as our_tracker

SIDES = [(rt, ours), (torch, theirs)]


def network(T):
    nn = T.nn
    head = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 4, 3, padding=1, groups=2))
    return nn.Sequential(head, nn.Flatten(), nn.Linear(64, 3)), T.ones(2, 1, 6, 6)


def forward(T):
    net, x = network(T)
    net(x)


def forward_and_backward(T):
    net, x = network(T)
    net(x).sum().backward()


def inputs_with_gradients(T):
    net, x = network(T)
    net(x.requires_grad_()).sum().backward()


def beside_modules(T):
    net, x = network(T)
    T.ones(3, 4) @ T.ones(4, 5)
    net(x)
    T.bmm(T.ones(2, 3, 4), T.ones(2, 4, 3))
    T.baddbmm(T.ones(2, 3, 3), T.ones(2, 3, 4), T.ones(2, 4, 3))


def transposed(T):
    T.nn.ConvTranspose1d(2, 3, 2)(T.ones(1, 2, 5)).sum().backward()


def attention(T):
    q = T.ones(1, 2, 3, 4)
    T.nn.functional.scaled_dot_product_attention(q, q, q)


def nothing(T):
    T.ones(3) + 1


def large(T):
    T.mm(T.ones(300, 100), T.ones(100, 500))


PROGRAMS = [forward, forward_and_backward, inputs_with_gradients, beside_modules, transposed, attention, nothing, large]


def counted(T, F, program, **settings):
    with F.FlopCounterMode(display=False, **settings) as counter:
        program(T)
    return counter


def as_text(counts):
    return {name: {str(operator): n for operator, n in of_one.items()} for name, of_one in counts.items()}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_counts_and_tables(program, capsys):
    found = []
    for T, F in SIDES:
        counter = counted(T, F, program)
        # Tabulate, which writes PyTorch's table, keeps the indentation in some releases and not in others.
        tables = [[line.split() for line in counter.get_table(depth).splitlines()] for depth in (None, 1, 3)]
        rows = [sorted(row for row in table if not row[0].startswith("---")) for table in tables]
        found.append((as_text(counter.get_flop_counts()), counter.get_total_flops(), rows))
    assert found[0] == found[1]


def test_the_table_is_printed(capsys):
    with ours.FlopCounterMode() as counter:
        large(rt)
    assert capsys.readouterr().out == counter.get_table() + "\n"
    assert counter.get_table().splitlines()[0].split() == ["Module", "FLOP", "%", "Total"]


@given(st.lists(st.integers(1, 5), min_size=3, max_size=3), st.data())
def test_formulas_of_convolutions(spatial, data):
    sizes = st.integers(1, 4)
    x = [data.draw(sizes), data.draw(sizes), *spatial]
    weight = [data.draw(sizes), data.draw(sizes), 2, 1, 3]
    out = [x[0], weight[0], *data.draw(st.lists(sizes, min_size=3, max_size=3))]
    for is_transposed in (False, True):
        counts = [F.conv_flop_count(x, weight, out, is_transposed) for _, F in SIDES]
        assert counts[0] == counts[1]


def heads(query, key):
    return [F.sdpa_flop_count((2, query, 3, 4), (2, key, 5, 4), (2, key, 5, 6)) for _, F in SIDES]


def test_formula_of_attention_with_shared_heads():
    assert heads(4, 2)[0] == heads(4, 2)[1]


def refused(F, function):
    with pytest.raises((AssertionError, RuntimeError, ValueError)) as caught:
        function(F)
    return caught.type, str(caught.value).split(", got <")[0].split(", or HigherOrder")[0]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda F: F.mm_flop((2, 3), (4, 5), out_val=None),
        lambda F: F.bmm_flop((2, 3, 4), (1, 4, 5), out_val=None),
        lambda F: F.bmm_flop((2, 3, 4), (2, 5, 5), out_val=None),
        lambda F: F.sdpa_flop_count((2, 3, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6)),
        lambda F: F.sdpa_flop_count((2, 3, 3, 4), (1, 3, 5, 4), (2, 3, 5, 6)),
        lambda F: F.register_flop_formula(len)(lambda: 0),
        lambda F: F.register_flop_formula((torch if F is theirs else rt).ops.aten.mm)(lambda: 0),
        lambda F: F.FlopCounterMode().__exit__(),
    ],
)
def test_errors(wrong):
    kinds = [refused(F, wrong) for _, F in SIDES]
    assert kinds[0][0] is kinds[1][0]
    assert kinds[0][1].replace(" ", "")[:60] == kinds[1][1].replace(" ", "")[:60]


def test_formulas_of_ones_own():
    for T, F in SIDES:
        with pytest.warns(UserWarning, match="mods argument is not needed anymore"):
            counter = F.FlopCounterMode(
                mods=[], display=False, custom_mapping={T.ops.aten.exp: lambda shape, out_shape: 7 * shape[0]}
            )
        with counter:
            T.exp(T.ones(3))
        assert counter.get_total_flops() == 21


@pytest.mark.parametrize("with_gradients", [False, True])
def test_modules_are_tracked(with_gradients):
    seen = []
    for T, M in ((rt, our_tracker), (torch, their_tracker)):
        net = T.nn.Sequential(T.nn.Linear(2, 2), T.nn.Sequential(T.nn.Linear(2, 2)))
        log = []
        with M.ModuleTracker() as tracker:
            for name, module in net.named_modules():
                module.register_forward_pre_hook(
                    lambda *a, n=name: log.append((n, sorted(tracker.parents), tracker.is_bw))
                )
                module.register_full_backward_hook(
                    lambda *a, n=name: log.append((n, len(tracker.parents), tracker.is_bw))
                )
            net(T.ones(1, 2, requires_grad=with_gradients)).sum().backward()
        assert tracker.parents == {"Global"}
        seen.append(log)
    assert seen[0] == seen[1]
