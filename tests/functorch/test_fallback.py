"""At most one in ten of the core operators has no batching rule, and goes through the loop over examples. `pytest -s` prints which."""

from tests.functorch import op_db

AT_MOST = 0.1


def test_few_core_operators_take_the_fallback(capsys):
    names = op_db.core_names()
    looped = {name: sorted(found) for name in names if (found := op_db.compare_vmap(name, samples=1).fallbacks)}
    with capsys.disabled():
        told = ", ".join(f"{name} ({' '.join(operators)})" for name, operators in looped.items())
        print(f"\n{len(looped)} of {len(names)} core operators go through the loop over examples: {told}")
    assert len(looped) <= AT_MOST * len(names)
    assert "linspace" in looped  # the test sees the loop where there is one
