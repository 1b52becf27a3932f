"""The recorded graph and run of backward, on the reference's graphs and on ours."""

import pytest
import torch

import readtorch
from readtorch.viz.record_backward import picture_of, record_backward

LIBRARIES = pytest.mark.parametrize("T", [torch, readtorch], ids=["torch", "readtorch"])


def two_layers(T):
    x = T.tensor([[1.0, -2.0], [3.0, 4.0]])
    w = T.tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True)
    v = T.tensor([[1.0], [-1.0]], requires_grad=True)
    h = (x @ w).relu()
    loss = (h @ v + h.sum()).sum()
    return loss, {"w": w, "v": v, "h": h}


def by_name(record, name):
    return [node for node in record["nodes"] if node["name"] == name]


@LIBRARIES
def test_order_needs_and_labels(T):
    loss, names = two_layers(T)
    record = record_backward([loss], names)
    nodes = record["nodes"]
    assert sorted(node["order"] for node in nodes) == list(range(len(nodes)))
    assert nodes[0]["name"] == "SumBackward0" and nodes[0]["order"] == 0 and nodes[0]["needs"] == 0
    (relu,) = by_name(record, "ReluBackward0")
    assert relu["needs"] == 2 and relu["label"] == "h [2, 2]"
    assert {node["label"] for node in by_name(record, "AccumulateGrad")} == {"w [2, 2]", "v [2, 1]"}


@LIBRARIES
def test_gradients_are_those_of_backward(T):
    loss, names = two_layers(T)
    record = record_backward([loss], names)
    loss.backward()
    for node in by_name(record, "AccumulateGrad"):
        name = node["label"].partition(" ")[0]
        expected = str(names[name].grad).removeprefix("tensor(").removesuffix(")").replace("\n       ", "\n")
        assert node["grads_in"][0]["value"] == expected == node["grads_out"][0]["value"]


@LIBRARIES
def test_nothing_is_left_behind(T):
    loss, names = two_layers(T)
    before = names["w"].grad = T.ones(2, 2)
    record_backward([loss], names)
    assert names["w"].grad is before and before.tolist() == [[1, 1], [1, 1]]
    assert names["v"].grad is None
    loss.backward()  # the graph is still there
    assert names["v"].grad is not None


@LIBRARIES
def test_no_hook_stays(T):
    loss, names = two_layers(T)
    first, second = record_backward([loss], names), record_backward([loss], names)
    assert first == second


@LIBRARIES
def test_saved_values_and_negative_dimensions(T):
    x = T.tensor([[1.0, 2.0]], requires_grad=True)
    record = record_backward([x.log_softmax(-1).sum()])
    saved = {note["name"]: note for note in by_name(record, "LogSoftmaxBackward0")[0]["saved"]}
    assert saved["dim"]["value"] == "-1"
    assert saved["result"]["shape"] == [1, 2]


@LIBRARIES
def test_a_released_graph_still_shows_its_nodes(T):
    x = T.tensor([2.0], requires_grad=True)
    y = x.exp()
    y.backward()
    with pytest.raises(RuntimeError):
        record_backward([y])


@LIBRARIES
def test_several_outputs_and_their_gradients(T):
    x = T.tensor([1.0, 2.0], requires_grad=True)
    record = record_backward([x * 2, x * 3], {"x": x}, [T.ones(2), T.ones(2)])
    (leaf,) = by_name(record, "AccumulateGrad")
    assert leaf["needs"] == 2 and leaf["grads_in"][0]["value"] == "[5., 5.]"


@LIBRARIES
def test_refuses_what_has_no_graph(T):
    with pytest.raises(ValueError, match="grad_fn"):
        record_backward([T.ones(2)])


def test_the_recorded_order_is_the_queue_s():
    """Of the nodes whose gradients have all arrived, the one with the largest sequence number runs."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    record = record_backward([layer(torch.randn(2, 3, 8)).sum()], layer)
    nodes, missing = record["nodes"], [node["needs"] for node in record["nodes"]]
    queue = [0]
    for node in sorted(nodes, key=lambda node: node["order"]):
        priority = lambda i: (nodes[i]["sequence_nr"] is None, nodes[i]["sequence_nr"] or 0)
        assert priority(node["id"]) == max(map(priority, queue))
        queue.remove(node["id"])
        for target, _ in node["next"]:
            if target is not None:
                missing[target] -= 1
                if not missing[target]:
                    queue.append(target)
    assert queue == []


@LIBRARIES
def test_the_line_that_made_a_node_is_the_reader_s(T):
    x = T.ones(2, requires_grad=True)
    with T.autograd.set_detect_anomaly(True):
        y = T.nn.functional.relu(x).sum()  # this line
    made = {node["name"]: node["made_by"] for node in record_backward([y])["nodes"]}
    assert made["ReluBackward0"] == "y = T.nn.functional.relu(x).sum()  # this line"


def two_blocks(T):
    T.manual_seed(0)
    block = lambda: T.nn.Sequential(T.nn.Linear(2, 3), T.nn.ReLU(), T.nn.Linear(3, 2))
    return T.nn.Sequential(block(), block()), T.ones(1, 2)


@LIBRARIES
def test_a_function_is_watched_module_by_module(T):
    net, x = two_blocks(T)
    record = record_backward(lambda: net(x).exp().sum(), net)
    modules = {(node["name"], node["module"]) for node in record["nodes"]}
    assert {("ReluBackward0", "0.1"), ("ReluBackward0", "1.1"), ("AddmmBackward0", "1.2")} <= modules
    assert {("ExpBackward0", ""), ("SumBackward0", ""), ("AccumulateGrad", "0.0")} <= modules
    assert not net._forward_hooks and not net[0]._forward_pre_hooks


@LIBRARIES
def test_parameters_say_which_module_made_a_node(T):
    net, x = two_blocks(T)
    record = record_backward(net(x).exp().sum(), net)
    modules = {(node["name"], node["module"]) for node in record["nodes"]}
    assert {("ReluBackward0", "0"), ("ReluBackward0", "1"), ("AddmmBackward0", "1.2"), ("TBackward0", "0.2")} <= modules
    assert ("ExpBackward0", "") in modules


@LIBRARIES
def test_a_picture_stands_for_the_graph(T):
    loss, names = two_layers(T)
    picture = picture_of(record_backward([loss], names))
    assert picture.startswith("<svg") and "ReluBackward0" in picture and "h [2, 2]" in picture
