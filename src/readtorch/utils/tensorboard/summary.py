"""From values to `Summary` protocol buffers, which are what an event is made of.

A summary has a tag and one of: a number, a histogram, an image, a sound, a tensor. A tensor says in its
metadata which plugin of TensorBoard knows what it means.

In PyTorch: `torch/utils/tensorboard/summary.py`. Explained in the chapter "Multiprocessing and
TensorBoard".
"""

import io
import json
import struct
import tempfile
import wave

import numpy as np
from google.protobuf import struct_pb2
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar.layout_pb2 import (
    Category,
    Chart,
    Layout,
    MarginChartContent,
    MultilineChartContent,
)
from tensorboard.plugins.hparams import metadata as hparams_metadata
from tensorboard.plugins.hparams.api_pb2 import DataType, Experiment, HParamInfo, MetricInfo, MetricName, Status
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo
from tensorboard.plugins.mesh import metadata as mesh_metadata
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

import readtorch
from readtorch.c10.extras import extra

from ._convert_np import make_np
from ._utils import _prepare_video, convert_to_HWC

__all__ = [
    "half_to_int",
    "int_to_half",
    "hparams",
    "scalar",
    "histogram_raw",
    "histogram",
    "make_histogram",
    "image",
    "image_boxes",
    "draw_boxes",
    "make_image",
    "video",
    "make_video",
    "audio",
    "custom_scalars",
    "text",
    "tensor_proto",
    "pr_curve_raw",
    "pr_curve",
    "compute_curve",
    "mesh",
]


def _tensor_summary(tag, tensor, plugin, content=b""):
    plugin_data = SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    metadata = SummaryMetadata(plugin_data=plugin_data)
    return Summary(value=[Summary.Value(tag=tag, tensor=tensor, metadata=metadata)])


def _shape(sizes):
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])


# Scalars


def scalar(name, tensor, collections=None, new_style=False, double_precision=False):
    """One number, from anything with one element. AssertionError for more.

    new_style: as a tensor instead of a float32 number; double_precision: as float64, only there.
    """
    tensor = make_np(tensor).squeeze()
    if tensor.ndim != 0:
        raise AssertionError(
            "Tensor should contain one element (0 dimensions). "
            f"            Was given size: {tensor.size} and {tensor.ndim} dimensions."
        )
    number = float(tensor)
    if not new_style:
        return Summary(value=[Summary.Value(tag=name, simple_value=number)])
    if double_precision:
        return _tensor_summary(name, TensorProto(double_val=[number], dtype="DT_DOUBLE"), "scalars")
    return _tensor_summary(name, TensorProto(float_val=[number], dtype="DT_FLOAT"), "scalars")


def custom_scalars(layout):
    """Which scalars stand together in which chart. layout: category -> chart -> [kind, tags], where the kind
    is "Multiline", or "Margin" of exactly three tags.
    """
    categories = [
        Category(title=title, chart=[_chart(name, *what) for name, what in charts.items()])
        for title, charts in layout.items()
    ]
    content = Layout(category=categories).SerializeToString()
    tensor = TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=_shape([]))
    return _tensor_summary("custom_scalars__config__", tensor, "custom_scalars")


def _chart(title, kind, tags, *_):
    if kind != "Margin":
        return Chart(title=title, multiline=MultilineChartContent(tag=tags))
    if len(tags) != 3:
        raise AssertionError("len(tags) != 3")
    value, lower, upper = tags
    series = MarginChartContent.Series(value=value, lower=lower, upper=upper)
    return Chart(title=title, margin=MarginChartContent(series=[series]))


# Histograms


def histogram_raw(name, min, max, num, sum, sum_squares, bucket_limits, bucket_counts):
    """A histogram that was counted elsewhere. bucket_limits: the upper end of each bucket."""
    counted = HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits, bucket=bucket_counts
    )
    return Summary(value=[Summary.Value(tag=name, histo=counted)])


def histogram(name, values, bins, max_bins=None):
    """The histogram of a tensor of any shape. ValueError if it is empty. See `make_histogram`."""
    counted = make_histogram(make_np(values).astype(float), bins, max_bins)
    return Summary(value=[Summary.Value(tag=name, histo=counted)])


def make_histogram(values, bins, max_bins=None):
    """Count an array's values in `bins` (what `np.histogram` takes), or in at most about `max_bins`, each
    made of neighbours. Only buckets between the first and the last value are kept.
    """
    if values.size == 0:
        raise ValueError("The input has no element.")
    values = values.reshape(-1)
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        counts, limits = _merged(counts, limits, len(counts) // max_bins)
    counts, limits = _trimmed(counts, limits)
    if counts.size == 0 or limits.size == 0:
        raise ValueError("The histogram is empty, please file a bug report.")
    return HistogramProto(
        min=values.min(),
        max=values.max(),
        num=len(values),
        sum=values.sum(),
        sum_squares=values.dot(values),
        bucket_limit=limits.tolist(),
        bucket=counts.tolist(),
    )


def _merged(counts, limits, width):
    """Each `width` buckets as one; the last may be made of fewer."""
    starts = np.arange(0, len(counts), width)
    return np.add.reduceat(counts, starts), np.append(limits[starts], limits[-1])


def _trimmed(counts, limits):
    """Without the empty buckets at both ends, except for one: a protobuf tells only where a bucket ends, so
    an empty bucket in front tells where the first begins.
    """
    filled = np.flatnonzero(counts)
    first, last = (filled[0], filled[-1]) if filled.size else (len(counts), 0)
    kept = counts[first - 1 : last + 1] if first else np.append(0, counts[: last + 1])
    return kept, limits[first : last + 2]


# Tensors and text


def half_to_int(f):
    """The bits of a number as a float32, in an int: what the field half_val of a protobuf takes."""
    return struct.unpack("i", struct.pack("f", f))[0]


def int_to_half(i):
    """The number back from `half_to_int`."""
    return struct.unpack("f", struct.pack("i", i))[0]


def _numbers(t):
    return t.flatten().tolist()


def _halves(t):
    return [half_to_int(number) for number in _numbers(t)]


def _pairs(t):
    return _numbers(readtorch.view_as_real(t))


_FIELDS = {  # dtype -> the protobuf's name for it, its field for the values, what makes a list of them
    readtorch.float16: ("DT_HALF", "half_val", _halves),
    readtorch.bfloat16: ("DT_BFLOAT16", "half_val", _halves),
    readtorch.float32: ("DT_FLOAT", "float_val", _numbers),
    readtorch.float64: ("DT_DOUBLE", "double_val", _numbers),
    readtorch.bool: ("DT_BOOL", "bool_val", _numbers),
    readtorch.uint8: ("DT_UINT8", "uint32_val", _numbers),
    readtorch.int8: ("DT_INT8", "int_val", _numbers),
    readtorch.int16: ("DT_INT16", "int_val", _numbers),
    readtorch.int32: ("DT_INT32", "int_val", _numbers),
    readtorch.int64: ("DT_INT64", "int64_val", _numbers),
    readtorch.complex64: ("DT_COMPLEX64", "scomplex_val", _pairs),
    readtorch.complex128: ("DT_COMPLEX128", "dcomplex_val", _pairs),
}


def tensor_proto(tag, tensor):
    """The whole tensor. ValueError for one of 2 GB or more, and for a dtype that a protobuf cannot hold."""
    if tensor.numel() * tensor.itemsize >= 1 << 31:
        raise ValueError("tensor is bigger than protocol buffer's hard limit of 2GB in size")
    if tensor.dtype not in _FIELDS:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    dtype, field, values = _FIELDS[tensor.dtype]
    proto = TensorProto(dtype=dtype, tensor_shape=_shape(tensor.shape), **{field: values(tensor)})
    return _tensor_summary(tag, proto, "tensor")


def text(tag, text):
    tensor = TensorProto(dtype="DT_STRING", string_val=[text.encode()], tensor_shape=_shape([1]))
    content = TextPluginData(version=0).SerializeToString()
    return _tensor_summary(f"{tag}/text_summary", tensor, "text", content)


# Precision and recall

_MOST_THRESHOLDS = 127  # the plugin's protobuf cannot take more


def pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, num_thresholds=127, weights=None):
    """A curve that was counted elsewhere: six arrays, one element for each threshold."""
    data = np.stack((tp, fp, tn, fn, precision, recall))
    return _pr_summary(tag, data, min(num_thresholds, _MOST_THRESHOLDS))


def pr_curve(tag, labels, predictions, num_thresholds=127, weights=None):
    """The curve of arrays of labels, 0 or 1, and predictions in [0, 1]."""
    num_thresholds = min(num_thresholds, _MOST_THRESHOLDS)
    return _pr_summary(tag, compute_curve(labels, predictions, num_thresholds, weights), num_thresholds)


def _pr_summary(tag, data, num_thresholds):
    content = PrCurvePluginData(version=0, num_thresholds=num_thresholds).SerializeToString()
    tensor = TensorProto(dtype="DT_FLOAT", float_val=data.ravel().tolist(), tensor_shape=_shape(data.shape))
    return _tensor_summary(tag, tensor, "pr_curves", content)


def compute_curve(labels, predictions, num_thresholds=None, weights=None):
    """Six rows (true and false positives, true and false negatives, precision, recall), one column for each
    threshold 0 … 1.
    """
    weights = 1.0 if weights is None else weights
    labels = labels.astype(np.float64)
    highest = np.int32(np.floor(predictions * (num_thresholds - 1)))  # the last threshold that it reaches

    def reaching(weights):
        counts, _ = np.histogram(highest, num_thresholds, (0, num_thresholds - 1), weights=weights)
        return np.cumsum(counts[::-1])[::-1]  # who reaches one reaches all below

    tp, fp = reaching(labels * weights), reaching((1.0 - labels) * weights)
    tn, fn = fp[0] - fp, tp[0] - tp
    precision, recall = (tp / np.maximum(1e-7, whole) for whole in (tp + fp, tp + fn))
    return np.stack((tp, fp, tn, fn, precision, recall))


# Meshes


def mesh(tag, vertices, colors, faces, config_dict, display_name=None, description=None):
    """Meshes or clouds of points: vertices, colors and faces, each (B, N, 3) or None, as one value each.
    config_dict: for three.js.
    """
    parts = [
        (part, kind)
        for part, kind in (
            (vertices, MeshPluginData.VERTEX),
            (faces, MeshPluginData.FACE),
            (colors, MeshPluginData.COLOR),
        )
        if part is not None
    ]
    components = mesh_metadata.get_components_bitmask([kind for _, kind in parts])
    config = "{}" if config_dict is None else json.dumps(config_dict, sort_keys=True)
    values = []
    for part, kind in parts:
        tensor = readtorch.as_tensor(part)
        sizes = list(tensor.shape)
        metadata = mesh_metadata.create_summary_metadata(
            tag, display_name, kind, components, sizes, description, json_config=config
        )
        proto = TensorProto(dtype="DT_FLOAT", float_val=_numbers(tensor), tensor_shape=_shape(sizes[:3]))
        name = mesh_metadata.get_instance_name(tag, kind)
        values.append(Summary.Value(tag=name, tensor=proto, metadata=metadata))
    return Summary(value=values)


# ----------------------------------------------------------------------------------------------------- images, videos, sounds
# Files of the usual formats inside of the event.


def image(tag, tensor, rescale=1, dataformats="NCHW"):
    """An image, or a batch of images as one grid. uint8 counts up to 255, other dtypes up to 1; what is more
    is cut off.
    """
    pixels = _bytes(convert_to_HWC(make_np(tensor), dataformats))
    return Summary(value=[Summary.Value(tag=tag, image=make_image(pixels, rescale))])


def image_boxes(tag, tensor_image, tensor_boxes, rescale=1, dataformats="CHW", labels=None):
    """An image with boxes (N, 4), each (xmin, ymin, xmax, ymax), and maybe a label for each."""
    pixels = _bytes(convert_to_HWC(make_np(tensor_image), dataformats))
    image = make_image(pixels, rescale, make_np(tensor_boxes), labels)
    return Summary(value=[Summary.Value(tag=tag, image=image)])


def _bytes(array):
    scaled = array.astype(np.float32) * _calc_scale_factor(array)
    return scaled.clip(0, 255).astype(np.uint8)


def _calc_scale_factor(array):
    return 1 if array.dtype == np.uint8 else 255


def make_image(tensor, rescale=1, rois=None, labels=None):
    """The PNG of a uint8 array (H, W, C); rois: boxes to draw on it."""
    with extra("tensorboard", "A picture in an event file"):
        from PIL import Image

    height, width, channels = tensor.shape
    picture = Image.fromarray(tensor)
    if rois is not None:
        picture = draw_boxes(picture, rois, labels)
    size = int(width * rescale), int(height * rescale)
    png = io.BytesIO()
    picture.resize(size, Image.Resampling.LANCZOS).save(png, format="PNG")
    return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=png.getvalue())


def draw_boxes(disp_image, boxes, labels=None):
    for i, (left, top, right, bottom) in enumerate(boxes):
        _draw_single_box(disp_image, left, top, right, bottom, None if labels is None else labels[i], "Red")
    return disp_image


def _draw_single_box(image, xmin, ymin, xmax, ymax, display_str, color="black", color_text="black", thickness=2):
    with extra("tensorboard", "A picture in an event file"):
        from PIL import ImageDraw, ImageFont

    draw, font = ImageDraw.Draw(image), ImageFont.load_default()
    corners = [(xmin, ymin), (xmin, ymax), (xmax, ymax), (xmax, ymin), (xmin, ymin)]
    draw.line(corners, width=thickness, fill=color)
    if display_str:
        left, top, right, bottom = font.getbbox(display_str)
        width, height = right - left, bottom - top
        margin = np.ceil(0.05 * height)
        draw.rectangle([(xmin, ymax - height - 2 * margin), (xmin + width, ymax)], fill=color)
        draw.text((xmin + margin, ymax - height - margin), display_str, fill=color_text, font=font)
    return image


def video(tag, tensor, fps=4):
    """Clips (N, T, C, H, W) in a grid. The summary is empty if there is no `moviepy`."""
    frames = _bytes(_prepare_video(make_np(tensor)))
    return Summary(value=[Summary.Value(tag=tag, image=make_video(frames, fps))])


def make_video(tensor, fps):
    """The GIF of frames (T, H, W, C). None, and a message, without `moviepy`."""
    try:
        import moviepy  # noqa: F401
    except ImportError:
        return print("add_video needs package moviepy")
    try:
        from moviepy import editor  # moviepy 2 has none
    except ImportError:
        return print(
            "moviepy is installed, but can't import moviepy.editor.",
            "Some packages could be missing [imageio, requests]",
        )
    frames, height, width, channels = tensor.shape
    with tempfile.NamedTemporaryFile(suffix=".gif") as file:
        clip = editor.ImageSequenceClip(list(tensor), fps=fps)
        clip.write_gif(file.name, verbose=False, logger=None)  # in PyTorch: other names for older versions
        gif = file.read()
    return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=gif)


def audio(tag, tensor, sample_rate=44100):
    """A sound in [-1, 1] with one channel, as a WAV of 16 bits. AssertionError for more dimensions."""
    samples = make_np(tensor).squeeze()
    if abs(samples).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        samples = samples.clip(-1, 1)
    if samples.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    sound = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=len(samples),
        encoded_audio_string=_wav(samples, sample_rate),
        content_type="audio/wav",
    )
    return Summary(value=[Summary.Value(tag=tag, audio=sound)])


def _wav(samples, sample_rate):
    file = io.BytesIO()
    with wave.open(file, "wb") as wav:
        wav.setnchannels(1)
        wav.setsampwidth(2)
        wav.setframerate(sample_rate)
        wav.writeframes((samples * np.iinfo(np.int16).max).astype("<i2").tobytes())
    return file.getvalue()


# ----------------------------------------------------------------------------------------------------- hyperparameters


def hparams(hparam_dict=None, metric_dict=None, hparam_domain_discrete=None):
    """Three summaries: which hyperparameters and metrics there are, their values in this run, and that the
    run has ended.

    hparam_dict: name -> int, float, str, bool, Tensor, or None, which is skipped; ValueError for others.
    hparam_domain_discrete: name -> list of all values that the experiment tries. TypeError for values of
    another type than the hyperparameter's, and for what is no dictionary.
    """
    hparam_domain_discrete = hparam_domain_discrete or {}
    for name, given in (
        ("hparam_dict", hparam_dict),
        ("metric_dict", metric_dict),
        ("hparam_domain_discrete", hparam_domain_discrete),
    ):
        if not isinstance(given, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    for name, values in hparam_domain_discrete.items():
        _check_domain(name, values, hparam_dict)

    start, infos = SessionStartInfo(), []
    for name, value in hparam_dict.items():
        if value is not None:
            field, number_or_text = _field_of(value)
            setattr(start.hparams[name], field, number_or_text)
            domain = None if isinstance(value, readtorch.Tensor) else hparam_domain_discrete.get(name)
            infos.append(
                HParamInfo(name=name, type=DataType.Value(_TYPES[field]), domain_discrete=_values(field, domain))
            )
    metrics = [MetricInfo(name=MetricName(tag=name)) for name in metric_dict]
    experiment = Experiment(hparam_infos=infos, metric_infos=metrics)
    end = SessionEndInfo(status=Status.Value("STATUS_SUCCESS"))
    return (
        _summary(hparams_metadata.EXPERIMENT_TAG, experiment=experiment),
        _summary(hparams_metadata.SESSION_START_INFO_TAG, session_start_info=start),
        _summary(hparams_metadata.SESSION_END_INFO_TAG, session_end_info=end),
    )


_TYPES = {"number_value": "DATA_TYPE_FLOAT64", "string_value": "DATA_TYPE_STRING"}


def _field_of(value):
    """The field of a protobuf Value that takes it, and what that field is set to."""
    if isinstance(value, (int, float)):  # a bool, too, becomes a number
        return "number_value", value
    if isinstance(value, str):
        return "string_value", value
    if isinstance(value, readtorch.Tensor):
        return "number_value", make_np(value)[0]
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")


def _values(field, domain):
    if domain is None:
        return None
    return struct_pb2.ListValue(values=[struct_pb2.Value(**{field: value}) for value in domain])


def _check_domain(name, values, hparam_dict):
    if (
        name not in hparam_dict
        or not isinstance(values, list)
        or not all(isinstance(value, type(hparam_dict[name])) for value in values)
    ):
        raise TypeError(
            f"parameter: hparam_domain_discrete[{name}] should be a list of same type as hparam_dict[{name}]."
        )


def _summary(tag, **content):
    content = HParamsPluginData(version=hparams_metadata.PLUGIN_DATA_VERSION, **content)
    plugin = SummaryMetadata.PluginData(plugin_name=hparams_metadata.PLUGIN_NAME, content=content.SerializeToString())
    return Summary(value=[Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=plugin))])
