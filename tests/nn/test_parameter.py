"""`nn.Parameter` and `nn.Buffer` next to the reference: what they share with the tensor that they are made of."""

from tests.programs import same


def test_memory_and_version():
    def program(T, show):
        for make in (T.nn.Parameter, T.nn.Buffer):
            t = T.zeros(2)
            t.add_(1)
            made = make(t)
            t.add_(1)
            show(made, made.data_ptr() == t.data_ptr(), made._version, t._version)
            show(made.data._version, made.detach()._version, made.is_leaf, made.grad_fn)

    same(program)


def test_write_through_the_source_is_noticed():
    def program(T, show):
        t = T.tensor([2.0, 3.0])
        p = T.nn.Parameter(t)
        y = (p * p).sum()
        t.mul_(10)
        show.error(y.backward)

    same(program)


def test_mark_instead_of_class():
    def program(T, show):
        class Kept(T.Tensor):
            def detach(self):
                return T.Tensor._make_subclass(Kept, super().detach())

        p = T.nn.Parameter(T.Tensor._make_subclass(Kept, T.ones(2)))
        m = T.nn.Module()
        m.w = p
        show(type(p) is Kept, isinstance(p, T.nn.Parameter), issubclass(Kept, T.nn.Parameter), p.requires_grad)
        show(vars(p), list(m._parameters))

    same(program)


def test_data():
    def program(T, show):
        p = T.nn.Parameter(T.ones(2))
        before = id(p)
        p.data = T.zeros(3, dtype=T.float64)
        show(p, id(p) == before, p.requires_grad)
        show.error(lambda: setattr(p, "data", T.ones(2, dtype=T.int64)))
        show.error(lambda: setattr(p, "data", 3))
        frozen = T.nn.Parameter(T.ones(2), requires_grad=False)
        frozen.data = T.ones(2, dtype=T.int64)
        show(frozen)

    same(program)


def test_data_of_another_kind_of_tensor():
    def program(T, show):
        def kinds():
            return [T.ones(2), T.ones(2, device="meta"), T.ones(2).to_sparse(), T.ones(2, dtype=T.complex64).conj()]

        for a in range(4):
            for b in range(4):
                show.error(lambda: setattr(kinds()[a], "data", kinds()[b])) if {a, b} & {1, 2} and a != b else None
                t = kinds()[a]
                if not {a, b} & {1, 2} or a == b:
                    t.data = kinds()[b]
                    show(t.layout, t.device, t.is_conj())

    same(program)


def test_arguments_that_are_refused():
    def program(T, show):
        for flag in (0, None, "x"):
            show.error(lambda: T.nn.Parameter(T.ones(2), flag))
        with T.inference_mode():
            made = T.ones(2)
        show.error(lambda: T.nn.Parameter(made))
        show(T.nn.Parameter(made, False))
        show.error(lambda: delattr(T.ones(2), "data"))
        show.error(lambda: setattr(T.nn.Parameter(T.ones(2)), "data", T.ones(2, dtype=T.int64).to_sparse()))

    same(program)


def test_numbers_without_gradients():
    def program(T, show):
        for dtype in (T.int64, T.bool, T.complex64, T.bfloat16):
            show.error(lambda: T.nn.Parameter(T.ones(2, dtype=dtype)))
            show(T.nn.Parameter(T.ones(2, dtype=dtype), requires_grad=False))

    same(program)
