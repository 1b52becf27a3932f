"""The model of the fusion viewer."""

import readtorch
from readtorch.viz.fusion_groups import fusion_groups


def program(x, y):
    return readtorch.tanh(x * y + 1).matmul(y).exp() * 2


def test_every_operator_of_a_group_has_a_line_of_its_kernel():
    model = fusion_groups(program, (readtorch.ones(3, 3), readtorch.ones(3, 3)))
    assert [kernel["group"] for kernel in model["kernels"]] == ["A", "B"]
    for kernel in model["kernels"]:
        own = [key for key, operator in model["operators"].items() if operator["group"] == kernel["group"]]
        lines = {line["key"]: line["text"] for line in kernel["lines"] if line["key"] >= 0}
        assert sorted(lines) == sorted(own)
        assert all(f"# {model['operators'][key]['kind']}" in text for key, text in lines.items())
    grouped = [row for row in model["before"] if row["key"] >= 0]
    assert [row["group"] for row in grouped] == ["A"] * 3 + ["B"] * 2
    assert sum("prim::TensorExprGroup" in line["text"] for line in model["after"]) == 2


def test_it_says_which_line_of_the_program_an_operator_came_from():
    model = fusion_groups(program, (readtorch.ones(3, 3), readtorch.ones(3, 3)))
    assert all("test_fusion_groups.py" in o["place"] and "tanh" in o["source"] for o in model["operators"].values())
