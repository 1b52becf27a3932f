"""Layers that pad, resize and rearrange, next to the reference: repr, settings, results, refusals."""

from tests.programs import same


def show_module(show, module, *inputs):
    own = sorted((name, value) for name, value in vars(module).items() if not name.startswith("_"))
    show(module, module.__constants__, own, list(module.state_dict()))
    for x in inputs:
        show.numbers(module(x))


def test_padding():
    def program(T, show):
        x = T.randn(2, 3, 4, 5, 6)
        for kind in ("Circular", "Reflection", "Replication", "Zero", "Constant"):
            value = (1.5,) if kind == "Constant" else ()
            for dims, images in ((1, x[0, 0]), (2, x[0]), (3, x)):
                make = getattr(T.nn, f"{kind}Pad{dims}d")
                for padding in (2, tuple(range(2 * dims))[::-1] if dims == 1 else (1, 2, 0, -1, 2, 1)[: 2 * dims], -1):
                    show_module(show, make(padding, *value), images, images[0])
        for dims in (1, 2, 3):
            show.error(lambda: getattr(T.nn, f"CircularPad{dims}d")(1)(T.zeros((1,) * 6)))
        show.error(lambda: T.nn.ReflectionPad2d(4)(x[0]))

    same(program)


def test_resizing():
    def program(T, show):
        x = T.randn(1, 2, 4, 5)
        for settings in (
            dict(size=7),
            dict(scale_factor=2),
            dict(scale_factor=(2, 1.5)),
            dict(size=(3, 4), mode="bicubic"),
            dict(scale_factor=1.3, mode="bilinear", align_corners=True, recompute_scale_factor=True),
        ):
            show_module(show, T.nn.Upsample(**settings), x)
        show_module(show, T.nn.UpsamplingNearest2d(scale_factor=2), x)
        show_module(show, T.nn.UpsamplingBilinear2d(size=(3, 9)), x)
        show.error(lambda: T.nn.Upsample()(x))

    same(program)


def test_rearranging():
    def program(T, show):
        x = T.randn(2, 8, 4, 6)
        show_module(show, T.nn.PixelShuffle(2), x, x[0])
        show_module(show, T.nn.PixelUnshuffle(2), x, x[0])
        show_module(show, T.nn.Unfold((2, 3), padding=1, stride=(1, 2)), x, x[0])
        show_module(show, T.nn.Fold((4, 6), 2, stride=2), T.randn(2, 8, 6))

    same(program)
