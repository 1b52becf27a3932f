"""Hyperparameters as summaries. In PyTorch: part of `torch/utils/tensorboard/summary.py`."""
from google.protobuf import struct_pb2
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.plugins.hparams import metadata
from tensorboard.plugins.hparams.api_pb2 import (DataType, Experiment, HParamInfo, MetricInfo, MetricName,
                                                 Status)
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo

import readtorch

from ._convert_np import make_np


def hparams(hparam_dict=None, metric_dict=None, hparam_domain_discrete=None):
    """Three summaries: which hyperparameters and metrics there are, their values in this run, and that the
    run has ended.

    hparam_dict: name -> int, float, str, bool, Tensor, or None, which is skipped; ValueError for others.
    hparam_domain_discrete: name -> list of all values that the experiment tries. TypeError for values of
    another type than the hyperparameter's, and for what is no dictionary.
    """
    hparam_domain_discrete = hparam_domain_discrete or {}
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict),
                        ("hparam_domain_discrete", hparam_domain_discrete)):
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
            infos.append(HParamInfo(name=name, type=DataType.Value(_TYPES[field]),
                                    domain_discrete=_values(field, domain)))
    metrics = [MetricInfo(name=MetricName(tag=name)) for name in metric_dict]
    experiment = Experiment(hparam_infos=infos, metric_infos=metrics)
    end = SessionEndInfo(status=Status.Value("STATUS_SUCCESS"))
    return (_summary(metadata.EXPERIMENT_TAG, experiment=experiment),
            _summary(metadata.SESSION_START_INFO_TAG, session_start_info=start),
            _summary(metadata.SESSION_END_INFO_TAG, session_end_info=end))


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
    if (name not in hparam_dict or not isinstance(values, list)
            or not all(isinstance(value, type(hparam_dict[name])) for value in values)):
        raise TypeError(f"parameter: hparam_domain_discrete[{name}] should be a list of same type as "
                        f"hparam_dict[{name}].")


def _summary(tag, **content):
    content = HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **content)
    plugin = SummaryMetadata.PluginData(plugin_name=metadata.PLUGIN_NAME, content=content.SerializeToString())
    return Summary(value=[Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=plugin))])
