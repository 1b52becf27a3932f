"""A share of the attack on operators: 150 seeded calls, and every overload with nothing but its required arguments."""

import pytest

import readtorch
from readtorch.aten.dispatcher import registry
from tests.attack import calls, children, operators


def test_odd_arguments():
    """The whole run is `python -m tests.attack.operators`."""
    ends = [end for _, end in operators.run(seed=4, numbers=range(150))]
    assert [f"{children.failure(end)}: {end['call']}" for end in ends if children.failure(end)] == []
    became = [end["became"] for end in ends]
    refused = sum(became.count(words) for words in ("same error", "other words", "other type"))
    assert became.count("same error") >= 0.6 * refused


def required(schema, known, side):
    """The arguments without a default, or None if there is no usable value for one of them."""
    found = {}
    for a in schema.arguments:
        if not a.has_default:
            if a.name not in known:
                return None
            found[a.name] = side.make(known[a.name])
    return found


@pytest.mark.filterwarnings("ignore")
def test_every_default_is_a_value():
    """A schema's default reaches its kernel as what it stands for, not as the word that it is written with."""
    tried, broken = 0, []
    for name, known in calls.usable().items():
        schema = registry[name].schema
        arguments = required(schema, known, calls.Side(readtorch))
        if arguments is None or all(not a.has_default for a in schema.arguments):
            continue
        tried += 1
        packet = getattr(readtorch.ops.aten, schema.name)
        try:
            getattr(packet, schema.overload or "default")(**arguments)
        except (AttributeError, KeyError, NameError, TypeError) as error:
            broken.append(f"{name}: {type(error).__name__}: {error}")
        except (RuntimeError, NotImplementedError, IndexError, ValueError):
            pass  # what these values lack, the schema's defaults have not spoilt
    assert broken == [] and tried > 500


@pytest.mark.parametrize(
    "call",
    [
        lambda A: A.randint.default(2, [2, 3]),
        lambda A: A.randperm.default(3),
        lambda A: A.tril_indices.default(2, 2),
        lambda A: A.triu_indices.default(2, 2),
        lambda A: A.fft_fftfreq.default(3),
        lambda A: A.hann_window.default(3),
        lambda A: A._foreach_add_.Scalar([readtorch.ones(2)], 1),
        lambda A: A.max_pool2d.default(readtorch.ones(1, 4, 4), [2]),
        lambda A: A.conv2d.default(readtorch.ones(1, 1, 4, 4), readtorch.ones(1, 1, 2, 2)),
    ],
)
def test_defaults_of_overloads(call):
    call(readtorch.ops.aten)
