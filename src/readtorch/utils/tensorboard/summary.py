"""From values to `Summary` protocol buffers, which are what an event is made of.

A summary has a tag and one of: a number, a histogram, an image, a sound, a tensor. A tensor says in its
metadata which plugin of TensorBoard knows what it means.

In PyTorch: `torch/utils/tensorboard/summary.py`. Explained in the chapter "Multiprocessing, TensorBoard,
ONNX".
"""
import json
import struct

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar.layout_pb2 import (Category, Chart, Layout, MarginChartContent,
                                                          MultilineChartContent)
from tensorboard.plugins.mesh import metadata as mesh_metadata
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

import readtorch

from ._convert_np import make_np
from ._hparams import hparams
from ._media import audio, draw_boxes, image, image_boxes, make_image, make_video, video

__all__ = ["half_to_int", "int_to_half", "hparams", "scalar", "histogram_raw", "histogram", "make_histogram",
           "image", "image_boxes", "draw_boxes", "make_image", "video", "make_video", "audio",
           "custom_scalars", "text", "tensor_proto", "pr_curve_raw", "pr_curve", "compute_curve", "mesh"]


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
        raise AssertionError("Tensor should contain one element (0 dimensions). "
                             f"            Was given size: {tensor.size} and {tensor.ndim} dimensions.")
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
    categories = [Category(title=title, chart=[_chart(name, *what) for name, what in charts.items()])
                  for title, charts in layout.items()]
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
    counted = HistogramProto(min=min, max=max, num=num, sum=sum, sum_squares=sum_squares,
                             bucket_limit=bucket_limits, bucket=bucket_counts)
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
        min=values.min(), max=values.max(), num=len(values), sum=values.sum(),
        sum_squares=values.dot(values), bucket_limit=limits.tolist(), bucket=counts.tolist(),
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
    kept = counts[first - 1:last + 1] if first else np.append(0, counts[:last + 1])
    return kept, limits[first:last + 2]


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
    parts = [(part, kind) for part, kind in ((vertices, MeshPluginData.VERTEX), (faces, MeshPluginData.FACE),
                                             (colors, MeshPluginData.COLOR)) if part is not None]
    components = mesh_metadata.get_components_bitmask([kind for _, kind in parts])
    config = "{}" if config_dict is None else json.dumps(config_dict, sort_keys=True)
    values = []
    for part, kind in parts:
        tensor = readtorch.as_tensor(part)
        sizes = list(tensor.shape)
        metadata = mesh_metadata.create_summary_metadata(tag, display_name, kind, components, sizes,
                                                         description, json_config=config)
        proto = TensorProto(dtype="DT_FLOAT", float_val=_numbers(tensor), tensor_shape=_shape(sizes[:3]))
        name = mesh_metadata.get_instance_name(tag, kind)
        values.append(Summary.Value(tag=name, tensor=proto, metadata=metadata))
    return Summary(value=values)
