"""`nn.utils.prune` next to the reference: the same masks from the same seed, the same errors."""

from importlib import import_module

import pytest

from tests.programs import same


def pruning(T):
    return import_module(T.__name__ + ".nn.utils.prune")


def state(T, show, module):
    show([(name, tuple(p.shape)) for name, p in module.named_parameters()], list(module.state_dict()))
    show([type(hook).__name__ for hook in module._forward_pre_hooks.values()])
    show.numbers(*module.state_dict().values())
    for name in ("weight", "bias"):
        show.numbers(getattr(module, name))


AMOUNTS = [0, 1, 2, 0.0, 0.3, 0.5, 1.0, 100]
WAYS = {
    "identity": {},
    "random_unstructured": {"amount": None},
    "l1_unstructured": {"amount": None},
    "random_structured": {"amount": None, "dim": 0},
    "ln_structured": {"amount": None, "n": 2, "dim": -1},
}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_once_and_again(way):
    def program(T, show):
        prune = pruning(T)
        for amount in AMOUNTS if WAYS[way] else [None]:
            for layer, x in ((T.nn.Linear(5, 4), T.randn(2, 5)), (T.nn.Conv2d(3, 4, 2), T.randn(1, 3, 4, 4))):
                options = {k: amount if k == "amount" else v for k, v in WAYS[way].items()}

                def once():
                    show(getattr(prune, way)(layer, "weight", **options) is layer)
                    show(prune.is_pruned(layer), prune.is_pruned(T.nn.Sequential(layer)))
                    state(T, show, layer)

                show.error(once)
                show.error(once)
                layer(x).square().sum().backward()
                show.numbers(*[p.grad for p in layer.parameters()])
                show.error(lambda: prune.remove(layer, "weight"))
                state(T, show, layer)
                show.error(lambda: prune.remove(layer, "weight"))
                show(prune.is_pruned(layer))

    same(program)


def test_norms_and_dimensions():
    def program(T, show):
        prune = pruning(T)
        for n in (1, 2, 0.5, float("inf"), -float("inf"), "fro"):
            for dim in (0, 1, -1, -2, 2, -3):
                layer = T.nn.Linear(4, 6)
                show.error(lambda: prune.ln_structured(layer, "weight", 0.5, n, dim))
                show.error(lambda: prune.ln_structured(layer, "weight", 1, n, dim))
                state(T, show, layer)
                layer = T.nn.Linear(4, 6)
                show.error(lambda: prune.random_structured(layer, "weight", 2, dim))
                state(T, show, layer)

    same(program)


def test_importance_scores():
    def program(T, show):
        prune = pruning(T)
        layer = T.nn.Linear(3, 2)
        scores = T.arange(6.0).view(2, 3)
        prune.l1_unstructured(layer, "weight", 2, importance_scores=scores)
        prune.ln_structured(layer, "weight", 1, 1, 1, importance_scores=-scores)
        state(T, show, layer)
        show.error(lambda: prune.l1_unstructured(layer, "weight", 2, importance_scores=scores[0]))
        show.error(lambda: prune.L1Unstructured(2).prune(scores, importance_scores=scores[0]))
        show.numbers(prune.L1Unstructured(2).prune(scores), prune.L1Unstructured(2).prune(scores, scores > 3))
        show.numbers(prune.L1Unstructured(2).prune(scores, importance_scores=-scores))

    same(program)


def test_containers():
    def program(T, show):
        prune = pruning(T)
        layer = T.nn.Linear(4, 4)
        prune.random_unstructured(layer, "weight", 3)
        prune.random_structured(layer, "weight", 1, 0)
        prune.custom_from_mask(layer, "weight", T.eye(4))
        prune.l1_unstructured(layer, "bias", 0.5)
        for hook in layer._forward_pre_hooks.values():
            show(type(hook).__name__, hook._tensor_name)
            if isinstance(hook, prune.PruningContainer):
                show(len(hook), [type(method).__name__ for method in hook], type(hook[1]).__name__)
        state(T, show, layer)
        layer.eval()
        layer.weight_orig.data.fill_(2.0)
        layer(T.ones(1, 4))
        show.numbers(layer.weight)
        show(layer.load_state_dict(layer.state_dict()))
        prune.remove(layer, "weight")
        show([type(hook).__name__ for hook in layer._forward_pre_hooks.values()])
        container = prune.PruningContainer()
        container._tensor_name = "weight"
        show.error(lambda: container.add_pruning_method(3))
        method = prune.Identity()
        method._tensor_name = "bias"
        show.error(lambda: container.add_pruning_method(method))

    same(program)


def test_methods_of_ones_own():
    def program(T, show):
        prune = pruning(T)

        def method(kind, compute=lambda self, t, default_mask: default_mask * 0):
            return type("Own", (prune.BasePruningMethod,), {"PRUNING_TYPE": kind, "compute_mask": compute})

        def broken(self, t, default_mask):
            raise KeyError("broken")

        for own in (
            method("unstructured"),
            method("structured"),
            method("global"),
            method("other"),
            method("global", broken),
        ):
            layer = T.nn.Linear(2, 2)
            show.error(lambda: own.apply(layer, "weight"))
            state(T, show, layer)
            show.error(lambda: own.apply(layer, "weight"))
            show([type(hook).__name__ for hook in layer._forward_pre_hooks.values()])
        show.error(lambda: own().apply_mask(layer))
        show.error(lambda: prune.BasePruningMethod())

    same(program)


def test_globally():
    def program(T, show):
        prune = pruning(T)
        net = T.nn.Sequential(T.nn.Linear(4, 3), T.nn.Linear(3, 2))
        pairs = [(net[0], "weight"), (net[1], "weight"), (net[1], "bias")]
        prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.4)
        prune.global_unstructured(pairs[:2], prune.RandomUnstructured, amount=2)
        scores = {(net[1], "bias"): T.tensor([0.0, 5.0])}
        prune.global_unstructured(pairs, prune.L1Unstructured, importance_scores=scores, amount=1)
        for layer in net:
            state(T, show, layer)
        show.error(lambda: prune.global_unstructured(3, prune.L1Unstructured, amount=1))
        show.error(lambda: prune.global_unstructured(pairs, prune.L1Unstructured, [], amount=1))
        show.error(lambda: prune.global_unstructured(pairs, prune.RandomStructured, amount=1))
        show.error(lambda: prune.global_unstructured(pairs, prune.L1Unstructured, amount=1000))

    same(program)


def test_errors():
    def program(T, show):
        prune = pruning(T)
        for amount in ("1", None, -1, -0.1, 1.1, True, 2.0):
            show.error(lambda: prune.RandomUnstructured(amount))
            show.error(lambda: prune.LnStructured(amount, 2))
        show.error(lambda: prune.l1_unstructured(T.nn.Linear(2, 2), "nothing", 1))
        show.error(lambda: prune.random_structured(T.nn.Linear(2, 2), "bias", 1, 0))
        show.error(lambda: prune.custom_from_mask(T.nn.Linear(2, 2), "bias", T.ones(3)))
        show.error(lambda: prune.remove(T.nn.Linear(2, 2), "weight"))

    same(program)
