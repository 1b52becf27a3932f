"""Every method of SummaryWriter writes the events that PyTorch's writes, byte for byte, times aside."""

import inspect
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import summary as their_summary

import readtorch
from readtorch.utils.tensorboard import FileWriter, SummaryWriter
from readtorch.utils.tensorboard import summary as our_summary
from tests.programs import same
from tests.utils_tensorboard.events import events_in, same_events, written

THEIRS = torch.utils.tensorboard


def public(cls):
    return [name for name, member in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")]


@pytest.mark.parametrize("name", ["SummaryWriter", "FileWriter"])
def test_the_public_face(name):
    ours, theirs = getattr(readtorch.utils.tensorboard, name), getattr(THEIRS, name)
    assert public(ours) == public(theirs)
    for method in ["__init__", *public(theirs)]:
        shown = [
            [(p.name, p.default) for p in inspect.signature(getattr(cls, method)).parameters.values()]
            for cls in (ours, theirs)
        ]
        assert shown[0] == shown[1], method
    assert readtorch.utils.tensorboard.__all__ == THEIRS.__all__


def test_the_functions_of_summary():
    assert sorted(our_summary.__all__) == sorted(their_summary.__all__)
    for name in their_summary.__all__:
        ours, theirs = (inspect.signature(getattr(m, name)).parameters for m in (our_summary, their_summary))
        assert list(ours) == list(theirs), name


def test_scalars(tmp_path):
    def program(T, writer):
        for step, value in enumerate(
            [
                1,
                2.5,
                np.float64(0.1),
                np.float32(3),
                np.ones((1, 1)),
                T.tensor([7]),
                T.tensor(0.5, dtype=T.bfloat16),
                T.tensor(2.0, requires_grad=True),
            ]
        ):
            writer.add_scalar("loss", value, step)
        writer.add_scalar("no step", 1)
        writer.add_scalar("time", 1, walltime=123)
        writer.add_scalar("new", 0.1, 1, new_style=True)
        writer.add_scalar("double", 0.1, np.int64(2), new_style=True, double_precision=True)
        for step in range(3):
            writer.add_scalars("group/one", {"a": step, "b": T.tensor(2 * step)}, step)

    events = same_events(program, tmp_path)
    assert list(events) == [".", "group_one_a", "group_one_b"]


def test_histograms(tmp_path):
    def program(T, writer):
        values = np.random.default_rng(0).standard_normal(500)
        for step, given in enumerate(
            [
                values,
                T.tensor(values),
                T.arange(-3, 5),
                [T.zeros(3)][0],
                5,
                T.tensor([1e-30, 1e19, -4.0]),
                T.tensor([True, False]),
            ]
        ):
            writer.add_histogram("h", given, step)
            writer.add_histogram("auto", np.asarray(0) if step == 4 else given, step, bins="auto")
            writer.add_histogram("few", given, step, max_bins=7)
            writer.add_histogram("ten", given, step, bins=10, max_bins=3)
        writer.add_histogram("far", values, bins=[-100, -50, 50, 100, 200])
        writer.add_histogram_raw("raw", 0, 3, 2, 3.0, 9, [1, 2, 3], np.array([1.0, 0, 1]), 4)

    same_events(program, tmp_path)


@pytest.mark.parametrize("bins", [3, 5, 11, 64])
@pytest.mark.parametrize("max_bins", [None, 1, 2, 3, 10])
def test_merged_bins(bins, max_bins):
    values = np.random.default_rng(bins).exponential(size=40)
    ours, theirs = (m.make_histogram(values, bins, max_bins) for m in (our_summary, their_summary))
    assert ours == theirs


def test_tensors(tmp_path):
    def program(T, writer):
        for name in ("float16", "bfloat16", "float32", "float64", "uint8", "bool", "complex64", "complex128", "int64"):
            writer.add_tensor(name, T.tensor([[1, 0, 3]]).to(getattr(T, name)))
        writer.add_tensor("number", T.tensor(2.5), 3)
        writer.add_tensor("int32", T.tensor([1, 2], dtype=T.int32))

    same_events(program, tmp_path)


def test_images(tmp_path):
    random = np.random.default_rng(0)
    picture, batch = random.random((3, 8, 6)), random.random((5, 3, 4, 6))

    def program(T, writer):
        writer.add_image("CHW", T.tensor(picture))
        writer.add_image("uint8", T.tensor(picture * 255).to(T.uint8), 1)
        writer.add_image("too bright", picture * 2, 1)
        writer.add_image("grey", picture[:1])
        writer.add_image("HWC", picture.transpose(1, 2, 0), dataformats="hwc")
        writer.add_image("HW", picture[0], dataformats="HW")
        writer.add_image("WH", picture[0], dataformats="WH")
        writer.add_images("NCHW", T.tensor(batch), 3)
        writer.add_images("grey batch", batch[:, :1], 3)
        writer.add_images("NHWC", batch.transpose(0, 2, 3, 1), dataformats="NHWC")
        boxes = np.array([[1, 1, 4, 5], [0, 2, 3, 6]])
        writer.add_image_with_boxes("boxes", T.tensor(picture), T.tensor(boxes), labels=["a", "b"])
        writer.add_image_with_boxes("larger", picture, boxes, rescale=2, labels="one")

    same_events(program, tmp_path)


def test_figures(tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")

    def program(T, writer):
        figures = [plt.figure(figsize=(1, 1)) for _ in range(3)]
        for i, figure in enumerate(figures):
            figure.gca().plot([0, i])
        writer.add_figure("one", figures[0], 1)
        writer.add_figure("several", figures[1:], 1, close=False)
        assert plt.get_fignums() == [figure.number for figure in figures[1:]]
        plt.close("all")

    with plt.rc_context({"backend": "agg"}):
        same_events(program, tmp_path)


def test_sounds_and_words(tmp_path, capsys):
    wave = np.sin(np.arange(100))

    def program(T, writer):
        writer.add_audio("sound", T.tensor(wave).reshape(1, -1), 1, sample_rate=8000)
        writer.add_audio("loud", 3 * wave)
        writer.add_text("words", "some **text**: ä", 2)

    same_events(program, tmp_path)
    assert capsys.readouterr().out == 2 * "warning: audio amplitude out of range, auto clipped.\n"


class Clip:
    """In place of moviepy's."""

    def __init__(self, frames, fps):
        self.content = repr((fps, [frame.tolist() for frame in frames])).encode()

    def write_gif(self, name, verbose, logger):
        Path(name).write_bytes(self.content)


@pytest.mark.parametrize("installed", ["moviepy", "moviepy 2", "nothing"])
def test_videos(tmp_path, monkeypatch, capsys, installed):
    moviepy = types.ModuleType("moviepy")
    if installed == "moviepy":
        moviepy.editor = types.SimpleNamespace(ImageSequenceClip=Clip)
    monkeypatch.setitem(sys.modules, "moviepy", None if installed == "nothing" else moviepy)
    clips = np.random.default_rng(0).random((5, 2, 3, 2, 4))

    def program(T, writer):
        for count in (1, 2, 3, 4, 5):
            writer.add_video("video", T.tensor(clips[:count]), count, fps=8)
        writer.add_video("uint8", T.tensor(clips * 255).to(T.uint8))

    same_events(program, tmp_path)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == (0 if installed == "moviepy" else 12) and len(set(said)) < 2


def test_pr_curves(tmp_path):
    random = np.random.default_rng(0)
    labels, predictions, weights = random.integers(0, 2, 50), random.random(50), random.random(50)

    def program(T, writer):
        writer.add_pr_curve("curve", T.tensor(labels), T.tensor(predictions), 1)
        writer.add_pr_curve("few", labels, predictions, num_thresholds=5, weights=weights)
        writer.add_pr_curve("many", labels, predictions, num_thresholds=500)
        rows = np.arange(24.0).reshape(6, 4)
        writer.add_pr_curve_raw("raw", *rows, global_step=2, num_thresholds=4)

    same_events(program, tmp_path)


def test_charts_of_scalars(tmp_path):
    def program(T, writer):
        writer.add_custom_scalars(
            {"A": {"one": ["Multiline", ["x", "y"]], "two": ["Margin", ["x", "y", "z"]]}, "B": {}}
        )
        writer.add_custom_scalars_multilinechart(["x", "y"], "category", "title")
        writer.add_custom_scalars_marginchart(["x", "y", "z"])

    same_events(program, tmp_path)


def test_meshes(tmp_path):
    def program(T, writer):
        vertices = T.arange(12.0).reshape(1, 4, 3)
        writer.add_mesh("points", vertices)
        writer.add_mesh(
            "mesh",
            vertices,
            T.full((1, 4, 3), 200),
            T.tensor([[[0, 1, 2], [1, 2, 3]]]),
            {"camera": {"cls": "PerspectiveCamera", "fov": 75}, "a": 1},
            3,
        )

    same_events(program, tmp_path)


def test_hyperparameters(tmp_path):
    def program(T, writer):
        choices = {"lr": [0.1, 0.2], "kind": ["sgd", "adam"], "momentum": [True, False]}
        settings = {"lr": 0.1, "size": 3, "kind": "sgd", "momentum": True, "decay": T.tensor([0.5]), "no": None}
        writer.add_hparams(settings, {"loss": 1, "accuracy": T.tensor(0.5)}, choices, run_name="first", global_step=2)
        writer.add_hparams({}, {"loss": 2}, run_name="second")

    events = same_events(program, tmp_path)
    assert list(events) == [".", "first", "second"]


def test_embeddings(tmp_path, capsys):
    random = np.random.default_rng(0)
    points, pictures = random.random((5, 3)), random.random((5, 1, 4, 6))

    def program(T, writer):
        writer.add_embedding(points, metadata=list("abcde"), label_img=T.tensor(pictures))
        writer.add_embedding(T.tensor(points), global_step=3, tag="a/b%\\")
        writer.add_embedding(points, [[i, 2 * i] for i in range(5)], global_step=4, metadata_header=["n", "2n"])
        writer.add_embedding(points, tag="default")

    same_events(program, tmp_path)
    found = [
        {
            str(file.relative_to(tmp_path / T)): file.read_bytes()
            for file in sorted((tmp_path / T).rglob("*"))
            if file.is_file() and "tfevents" not in file.name
        }
        for T in ("readtorch", "torch")
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 7
    assert len(set(capsys.readouterr().out.splitlines())) == 1


def test_what_goes_wrong(tmp_path):
    def program(T, show):
        with T.utils.tensorboard.SummaryWriter(tmp_path / T.__name__) as writer:
            four, file = T.arange(4.0), tmp_path / T.__name__ / "00000"
            for wrong in [
                lambda: writer.add_scalar("a", four),
                lambda: writer.add_scalar("a", [1]),
                lambda: writer.add_scalar("a", "one"),
                lambda: writer.add_histogram("a", T.ones(0)),
                lambda: writer.add_histogram("a", T.tensor([float("nan")]), bins="auto"),
                lambda: writer.add_histogram("a", 3, bins=[5, 6, 7]),
                lambda: writer.add_histogram_raw("a", 0, 1, 2, 3, 4, [1, 2], [1]),
                lambda: writer.add_image("a", four),
                lambda: writer.add_image("a", four, dataformats="CCH"),
                lambda: writer.add_images("a", T.ones(2, 2, 3, 3)),
                lambda: writer.add_audio("a", T.ones(2, 2)),
                lambda: writer.add_tensor("a", T.ones(2).to(T.float8_e4m3fn)),
                lambda: writer.add_tensor("a", T.ones(2, dtype=T.uint16)),
                lambda: writer.add_tensor("a", T.ones(1).expand(1 << 29)),
                lambda: writer.add_custom_scalars({"a": {"b": ["Margin", ["x"]]}}),
                lambda: writer.add_custom_scalars_marginchart(["x"]),
                lambda: writer.add_hparams([], {}),
                lambda: writer.add_hparams({"a": []}, {}),
                lambda: writer.add_hparams({"a": 1}, {}, {"b": [1]}),
                lambda: writer.add_hparams({"a": 1}, {}, {"a": ["x"]}),
                lambda: writer.add_hparams({"a": 1}, {}, [1]),
                lambda: writer.add_embedding(T.ones(3, 2), ["a"]),
                lambda: writer.add_embedding(T.ones(3, 2), [["a"]] * 3, metadata_header=["b", "c"]),
                lambda: writer.add_embedding(T.ones(3, 2), label_img=T.ones(2, 3, 4, 4)),
                lambda: writer.add_embedding(T.ones(3)),
            ]:
                show.error(wrong)
            file.joinpath("file").write_text("")
            show.error(lambda: writer.add_embedding(T.ones(3, 2), tag="file"))
            for wrong in (lambda s: s.hparams([], {}), lambda s: s.hparams({}, None)):
                show.error(lambda: wrong(our_summary if T is readtorch else their_summary))

    same(program)


def test_halves():
    for number in (0.5, -3.25, 1e-3):
        as_int = our_summary.half_to_int(number)
        assert as_int == their_summary.half_to_int(number)
        assert our_summary.int_to_half(as_int) == their_summary.int_to_half(as_int)


def test_a_run_that_goes_on(tmp_path):
    def program(T, writer):
        writer.add_scalar("x", 1, 1)
        writer.close()
        writer.close()
        writer.flush()
        with T.utils.tensorboard.SummaryWriter(writer.get_logdir(), purge_step=5, filename_suffix=".z") as second:
            second.add_scalar("x", 2, 5)
            assert all(len(list(Path(second.get_logdir()).glob(name))) == 1 for name in ("*.z", "*[!z]"))

    events = same_events(program, tmp_path)["."]
    assert [event.step for event in events] == [0, 1, 0, 5, 5, 5]


def test_a_writer_comes_back_after_close(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("x", 1, 1)
    writer.add_scalar("x", 2, 2)
    writer.close()
    assert sum(len(events) for events in events_in(tmp_path).values()) == 4


def test_where_files_go_by_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SummaryWriter(comment="_lr1") as writer:
        assert Path(writer.log_dir).parent == Path("runs") and writer.log_dir.endswith("_lr1")
    assert len(list(Path(writer.log_dir).iterdir())) == 1


def test_a_file_writer_reopens(tmp_path):
    writer = FileWriter(tmp_path)
    writer.add_summary(our_summary.scalar("x", 1), np.int32(3))
    writer.reopen()
    writer.add_summary(our_summary.scalar("x", 2), 4)
    writer.close()
    writer.reopen()
    writer.add_summary(our_summary.scalar("x", 3), 5)
    writer.flush()
    assert writer.get_logdir() == str(tmp_path)
    writer.close()
    assert [event.step for event in events_in(tmp_path)["."]] == [0, 3, 4, 0, 5]


def test_tensorboard_reads_a_run(tmp_path):
    def program(T, writer):
        for step in range(10):
            writer.add_scalar("loss", 1 / (1 + step), step)
            writer.add_histogram("weight", T.linspace(-1, 1, 11) * step, step)
        writer.add_image("image", np.zeros((3, 2, 2)))
        writer.add_text("note", "text")

    written(program, readtorch, tmp_path)
    run = EventAccumulator(str(tmp_path / "readtorch")).Reload()
    tags = run.Tags()
    assert (tags["scalars"], tags["histograms"], tags["images"], tags["tensors"]) == (
        ["loss"],
        ["weight"],
        ["image"],
        ["note/text_summary"],
    )
    assert [(e.step, e.value) for e in run.Scalars("loss")] == [
        (step, np.float32(1 / (1 + step))) for step in range(10)
    ]
    last = run.Histograms("weight")[-1].histogram_value
    assert last.num == sum(last.bucket) == 11 and last.max == 9
