"""SummaryWriter: the course of a training run as event files that TensorBoard reads.

In PyTorch: `torch/utils/tensorboard/writer.py`. Explained in the chapter "Multiprocessing and
TensorBoard".
"""

import datetime
import functools
import os
import socket
import time

from google.protobuf import text_format
from tensorboard.compat import tf
from tensorboard.compat.proto.event_pb2 import Event, SessionLog, TaggedRunMetadata
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from ._convert_np import make_np
from ._embedding import get_embedding_info, make_mat, make_sprite, make_tsv, write_pbtxt
from ._onnx_graph import load_onnx_graph
from ._pytorch_graph import graph
from ._utils import figure_to_image
from .summary import (
    audio,
    custom_scalars,
    histogram,
    histogram_raw,
    hparams,
    image,
    image_boxes,
    mesh,
    pr_curve,
    pr_curve_raw,
    scalar,
    tensor_proto,
    text,
    video,
)

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """One event file in a directory. A thread writes it, so that the training does not wait.

    max_queue: so many events may wait for that thread. flush_secs: so often they go to disk.
    """

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self._open = functools.partial(EventFileWriter, str(log_dir), max_queue, flush_secs, filename_suffix)
        self._closed = False
        self.event_writer = self._open()

    def get_logdir(self):
        return self.event_writer.get_logdir()

    def add_event(self, event, step=None, walltime=None):
        """Write an Event. walltime: seconds since 1970, now if None."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary, global_step=None, walltime=None):
        self.add_event(Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile, walltime=None):
        """Write a GraphDef and its statistics, two events."""
        graph, statistics = graph_profile
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)
        tagged = TaggedRunMetadata(tag="step1", run_metadata=statistics.SerializeToString())
        self.add_event(Event(tagged_run_metadata=tagged), None, walltime)

    def add_onnx_graph(self, graph, walltime=None):
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self):
        """Return when all events are on disk."""
        self.event_writer.flush()

    def close(self):
        self.event_writer.close()
        self._closed = True

    def reopen(self):
        """After `close`: write to a new file in the same directory. Else nothing happens."""
        # in PyTorch: AttributeError, because tensorboard's writer has lost the method that this one calls
        if self._closed:
            self._closed = False
            self.event_writer = self._open()


def _default_bins():
    """Limits from -1e20 to 1e20, each a tenth farther from zero than the one before: about 24 for each
    factor of ten, and never a place that would be too coarse.
    """
    positive, limit = [], 1e-12
    while limit < 1e20:
        positive.append(limit)
        limit *= 1.1
    return [-limit for limit in reversed(positive)] + [0] + positive


class SummaryWriter:
    """Writes what you log to event files in `log_dir` (runs/DATE_TIME_HOST + comment, if it is not given).

    purge_step: TensorBoard forgets events in this directory from this step on; for a run that goes on after
    a crash. max_queue, flush_secs, filename_suffix: see FileWriter.

    In all methods, tag is the name of a series; global_step its x; walltime the time to write down instead of
    now. Values may be tensors, arrays or numbers.
    """

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        if not log_dir:
            now = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.default_bins = _default_bins()
        self._projector_config = ProjectorConfig()  # all embeddings so far
        self.file_writer = self.all_writers = None  # all_writers: directory -> FileWriter
        self._get_file_writer()

    def get_logdir(self):
        return self.log_dir

    # The files

    def _get_file_writer(self):
        """The writer for `log_dir`, a new one after `close`."""
        if self.file_writer is None:
            self.file_writer = self._new_file_writer(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                start = SessionLog(status=SessionLog.START)
                self.file_writer.add_event(Event(step=self.purge_step, file_version="brain.Event:2"))
                self.file_writer.add_event(Event(step=self.purge_step, session_log=start))
                self.purge_step = None
        return self.file_writer

    def _new_file_writer(self, log_dir):
        return FileWriter(log_dir, self.max_queue, self.flush_secs, self.filename_suffix)

    def _add(self, summary, global_step=None, walltime=None):
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def flush(self):
        """Return when all events are on disk."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self):
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.close()

    # Numbers

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """A number, kept as float32. new_style: kept as a tensor, with double_precision of float64."""
        self._add(
            scalar(tag, scalar_value, new_style=new_style, double_precision=double_precision), global_step, walltime
        )

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Several series in one plot: each gets a run of its own, a directory named after both tags."""
        walltime = time.time() if walltime is None else walltime
        log_dir = self._get_file_writer().get_logdir()
        for tag, value in tag_scalar_dict.items():
            run = f"{log_dir}/{main_tag.replace('/', '_')}_{tag}"
            if run not in self.all_writers:
                self.all_writers[run] = self._new_file_writer(run)
            self.all_writers[run].add_summary(scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None):
        self._add(tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """How often which values occur. bins: what `np.histogram` takes, or "tensorflow": `default_bins`."""
        if isinstance(bins, str) and bins == "tensorflow":
            bins = self.default_bins
        self._add(histogram(tag, values, bins, max_bins=max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None, walltime=None
    ):
        """A histogram that was counted elsewhere. ValueError unless each bucket has a limit."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        self._add(
            histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts), global_step, walltime
        )

    def add_pr_curve(self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None):
        """Precision and recall of predictions in [0, 1] for labels 0 or 1."""
        curve = pr_curve(tag, make_np(labels), make_np(predictions), num_thresholds, weights)
        self._add(curve, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag,
        true_positive_counts,
        false_positive_counts,
        true_negative_counts,
        false_negative_counts,
        precision,
        recall,
        global_step=None,
        num_thresholds=127,
        weights=None,
        walltime=None,
    ):
        """The same, counted elsewhere: one element for each threshold."""
        curve = pr_curve_raw(
            tag,
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
            precision,
            recall,
            num_thresholds,
            weights,
        )
        self._add(curve, global_step, walltime)

    # Which scalars stand in one chart

    def add_custom_scalars(self, layout):
        """layout: category -> chart -> [kind, tags], see `summary.custom_scalars`. Once for each writer."""
        self._add(custom_scalars(layout))

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled"):
        self._add(custom_scalars({category: {title: ["Multiline", tags]}}))

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled"):
        """Three tags: a value and the margin around it. AssertionError for another number."""
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self._add(custom_scalars({category: {title: ["Margin", tags]}}))

    # Pictures, sounds, words

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """A picture, whose dimensions `dataformats` names: CHW, HWC, HW … Needs `pillow`."""
        self._add(image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """A batch of pictures, in a grid."""
        self._add(image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_image_with_boxes(
        self, tag, img_tensor, box_tensor, global_step=None, walltime=None, rescale=1, dataformats="CHW", labels=None
    ):
        """A picture with boxes (N, 4): xmin, ymin, xmax, ymax. labels: one for each box, or none is shown."""
        if isinstance(labels, str):
            labels = [labels]
        if labels is not None and len(labels) != box_tensor.shape[0]:
            labels = None
        drawn = image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(drawn, global_step, walltime)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """A figure of matplotlib, or a list of figures in a grid; they are closed, unless close=False."""
        formats = "NCHW" if isinstance(figure, list) else "CHW"
        self.add_image(tag, figure_to_image(figure, close), global_step, walltime, dataformats=formats)

    def add_video(self, tag, vid_tensor, global_step=None, fps=4, walltime=None):
        """Clips (N, T, C, H, W), in a grid. Needs `moviepy`."""
        self._add(video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        """A sound (1, L) in [-1, 1]."""
        self._add(audio(tag, snd_tensor, sample_rate=sample_rate), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        self._add(text(tag, text_string), global_step, walltime)

    def add_mesh(self, tag, vertices, colors=None, faces=None, config_dict=None, global_step=None, walltime=None):
        """Meshes or clouds of points, each part (B, N, 3). config_dict: for three.js, which draws them."""
        self._add(mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    # Models and experiments

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """The trace of a module in eval mode. use_strict_trace: see `jit.trace`; verbose: print it."""
        self._get_file_writer().add_graph(graph(model, input_to_model, verbose, use_strict_trace))

    def add_onnx_graph(self, prototxt):
        """The graph of an ONNX file. Needs `onnx`."""
        self._get_file_writer().add_onnx_graph(load_onnx_graph(prototxt))

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """Hyperparameters and what came of them, in a run of its own (the time, if it has no name).

        See `summary.hparams` for what the dictionaries may contain.
        """
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        summaries = hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        run = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(log_dir=run) as writer:
            for summary in summaries:
                writer._add(summary, global_step)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    def add_embedding(self, mat, metadata=None, label_img=None, global_step=None, tag="default", metadata_header=None):
        """Points (N, D) for the projector, which reads files of its own, not events.

        metadata: a label for each point, or a list of labels, one for each of `metadata_header`. label_img: a
        picture (N, C, H, W) for each.
        """
        mat = make_np(mat)
        step = 0 if global_step is None else global_step
        subdir = f"{str(step).zfill(5)}/{self._encode(tag)}"
        save_path = os.path.join(self._get_file_writer().get_logdir(), subdir)
        _make_directory(save_path)
        if metadata is not None:
            if mat.shape[0] != len(metadata):
                raise AssertionError("#labels should equal with #data points")
            make_tsv(metadata, save_path, metadata_header=metadata_header)
        if label_img is not None:
            if mat.shape[0] != label_img.shape[0]:
                raise AssertionError("#images should equal with #data points")
            make_sprite(label_img, save_path)
        if mat.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        make_mat(mat, save_path)
        self._list_embedding(get_embedding_info(metadata, label_img, subdir, step, tag))

    def _list_embedding(self, info):
        """Write the list of all embeddings again: not every file system can append."""
        self._projector_config.embeddings.append(info)
        write_pbtxt(self._get_file_writer().get_logdir(), text_format.MessageToString(self._projector_config))

    @staticmethod
    def _encode(rawstr):
        """A tag as one name of a directory."""
        for mark in "%/\\":  # first the mark of what was replaced
            rawstr = rawstr.replace(mark, f"%{ord(mark):02x}")
        return rawstr


def _make_directory(path):
    files = tf.io.gfile
    if not files.exists(path):
        files.makedirs(path)
    elif files.isdir(path):
        print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
    else:
        raise NotADirectoryError(f"Path: `{path}` exists, but is a file. Cannot proceed.")
