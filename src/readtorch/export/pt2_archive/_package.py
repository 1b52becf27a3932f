"""Writes and reads `.pt2` files. In PyTorch: `torch/export/pt2_archive/_package.py`.

Note [ The records of a .pt2 file ]

    models/model.json                         the graph, its signature, how arguments are nested
    data/weights/weight_0 …                   the bytes of each storage of the state dict
    data/weights/model_weights_config.json    name -> which of them, sizes, strides, dtype, whether it is a parameter
    data/constants/tensor_0 …, model_constants_config.json    the same for constants
    data/sample_inputs/model.pt               the example inputs, by `torch.save`
    extra/…                                   the caller's own
    archive_format, archive_version           pt2, 0

Tensors of one storage share it again when they are loaded. In PyTorch also: compiled libraries of AOTInductor, objects of C++ classes, files of
before 2.8.
"""

import io
import json
import logging
import os
import zipfile

import readtorch
from readtorch._export.serde.deserialize import TensorMeta, deserialize, parsed
from readtorch._export.serde.schema import SerializeError, checked
from readtorch._export.serde.serialize import serialize, serialize_tensor_meta
from readtorch._tensor import Tensor
from readtorch.nn import Parameter
from readtorch.serialization import config
from readtorch.serialization._files import is_path, open_for_reading, open_for_writing
from readtorch.serialization._inline_container import ZipReader, ZipWriter
from readtorch.serialization._save import _archive_name

from . import constants

log = logging.getLogger(__name__)

FORMAT_VERSION = b"6\n"  # of the archive, as `torch.export.save` writes it
OVERALL = "model"  # what a file with one program calls it


def is_pt2_package(serialized_model):
    """Whether a file (a path, or its bytes) is a `.pt2` file."""
    try:
        is_bytes = isinstance(serialized_model, bytes)
        with zipfile.ZipFile(io.BytesIO(serialized_model) if is_bytes else serialized_model) as archive:
            root = archive.namelist()[0].split("/")[0]
            return archive.read(f"{root}/{constants.ARCHIVE_FORMAT_PATH}") == constants.ARCHIVE_FORMAT_VALUE.encode()
    except Exception:
        return False


# -------------------------------------------------------------------------------------------------------- writing


def package_pt2(f, ep, extra_files=None, opset_version=None, pickle_protocol=2):
    """Write one program. f: path, or a file object. extra_files: {name: text}."""
    if is_path(f) and not os.fspath(f).endswith(".pt2"):
        log.warning("Expect archive file to be a file ending in .pt2, or is a buffer. Instead got {%s}", f)
    records = _program_records(ep, opset_version, pickle_protocol)
    for name, text in (extra_files or {}).items():
        records[f"{constants.EXTRA_DIR}{name}"] = text.encode()
    records[constants.ARCHIVE_FORMAT_PATH] = constants.ARCHIVE_FORMAT_VALUE.encode()
    records[constants.ARCHIVE_VERSION_PATH] = constants.ARCHIVE_VERSION_VALUE.encode()
    records[".data/version"] = FORMAT_VERSION
    with open_for_writing(f) as file:
        name = _archive_name(os.fspath(f)) if is_path(f) else "archive"
        writer = ZipWriter(lambda data: file.write(memoryview(data)), None, name, config.save.compute_crc32)
        for name, data in records.items():
            writer.write_record(name, data)
        writer.write_end_of_file()
    if isinstance(f, io.IOBase):
        f.seek(0)


def _program_records(ep, opset_version, pickle_protocol):
    """{name: bytes}, in PyTorch's order."""
    records = _tensor_records(
        ep.state_dict, constants.WEIGHTS_DIR, constants.WEIGHT_FILENAME_PREFIX, constants.WEIGHTS_CONFIG_FILENAME_FORMAT
    )
    records |= _tensor_records(
        ep.constants,
        constants.CONSTANTS_DIR,
        constants.TENSOR_CONSTANT_FILENAME_PREFIX,
        constants.CONSTANTS_CONFIG_FILENAME_FORMAT,
    )
    records[constants.MODELS_FILENAME_FORMAT.format(OVERALL)] = serialize(ep, opset_version)
    inputs = io.BytesIO()
    if ep.example_inputs is not None:
        readtorch.save(ep.example_inputs, inputs, pickle_protocol=pickle_protocol)
    records[constants.SAMPLE_INPUTS_FILENAME_FORMAT.format(OVERALL)] = inputs.getvalue()
    return records


def _tensor_records(tensors, folder, prefix, config_name):
    """The bytes of the storages of named tensors, each once, and which tensor is where."""
    records, places, described = {}, {}, {}
    for name, t in tensors.items():
        if not isinstance(t, Tensor):
            raise RuntimeError(f"Unsupported constant type: {type(t)}")
        storage = t.untyped_storage()
        key = (storage.data_ptr(), t.dtype) if t.numel() else name
        if key not in places:
            places[key] = f"{prefix}{len(places)}"
            records[folder + places[key]] = bytes(storage.cpu()._impl.buffer.data) if t.numel() else b""
        described[name] = {
            "path_name": places[key],
            "is_param": isinstance(t, Parameter),
            "use_pickle": False,
            "tensor_meta": serialize_tensor_meta(t),
        }
    records[config_name.format(OVERALL)] = json.dumps({"config": described}).encode()
    return records


# -------------------------------------------------------------------------------------------------------- reading


def load_pt2(f, expected_opset_version=None):
    """({name: ExportedProgram}, {name: text of the extra files}). Raises RuntimeError for a file that is damaged or none."""
    with open_for_reading(f) as file:
        reader = ZipReader(file)
        if reader.text(constants.ARCHIVE_FORMAT_PATH) != constants.ARCHIVE_FORMAT_VALUE:
            raise SerializeError("the archive is no .pt2 file: it has no record archive_format that says so")
        names = reader.names()
        models = [n for n in names if n.startswith(constants.MODELS_DIR) and n.endswith(".json")]
        programs = {}
        for path in models:
            name = path[len(constants.MODELS_DIR) : -len(".json")]
            programs[name] = _load_program(reader, name, expected_opset_version)
        extra = {n[len(constants.EXTRA_DIR) :]: _text(reader, n) for n in names if n.startswith(constants.EXTRA_DIR)}
        return programs, extra


def _text(reader, name):
    try:
        return reader.read(name).decode()
    except UnicodeDecodeError:
        raise SerializeError(f"{name} is no text") from None


def _load_program(reader, name, expected_opset_version):
    state_dict = _load_tensors(reader, constants.WEIGHTS_DIR, constants.WEIGHTS_CONFIG_FILENAME_FORMAT.format(name))
    constant_tensors = _load_tensors(
        reader, constants.CONSTANTS_DIR, constants.CONSTANTS_CONFIG_FILENAME_FORMAT.format(name)
    )
    inputs = reader.read(constants.SAMPLE_INPUTS_FILENAME_FORMAT.format(name))
    example_inputs = readtorch.load(io.BytesIO(inputs), weights_only=True) if inputs else None
    if example_inputs is not None and not _are_inputs(example_inputs):
        raise SerializeError("the example inputs are not a tuple of arguments and a dict of keyword arguments")
    data = reader.read(constants.MODELS_FILENAME_FORMAT.format(name))
    return deserialize(data, state_dict, constant_tensors, example_inputs, expected_opset_version)


def _are_inputs(value):
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    return isinstance(value[0], tuple) and isinstance(value[1], dict)


def _load_tensors(reader, folder, config_name):
    """{name: tensor}. Those of one record share its memory."""
    described = checked("PayloadConfig", parsed(reader.read(config_name), config_name), config_name)["config"]
    loaded, tensors = {}, {}
    for name, payload in described.items():
        if payload["use_pickle"] or payload["tensor_meta"] is None:
            raise SerializeError(f"{name} is pickled: readtorch loads plain tensors alone")
        meta = TensorMeta(payload["tensor_meta"], name)
        key = payload["path_name"], meta.dtype
        if key not in loaded:
            loaded[key] = _elements(reader, folder + payload["path_name"], meta)
        tensors[name] = _tensor(loaded[key], meta, payload["is_param"])
    return tensors


def _elements(reader, path, meta):
    """A flat tensor of all that a record holds."""
    buffer = bytearray(reader.read(path))
    if not buffer:
        return readtorch.empty(0, dtype=meta.dtype)
    if len(buffer) % meta.dtype.itemsize:
        raise SerializeError(
            f"Record {path}: size {len(buffer)} is not a multiple of element size {meta.dtype.itemsize} for dtype {meta.dtype}"
        )
    return readtorch.frombuffer(buffer, dtype=meta.dtype)


def _tensor(elements, meta, is_param):
    if meta.reach > elements.numel():
        raise SerializeError(f"{meta.what} reaches beyond its {elements.numel()} elements: sizes {meta.sizes}")
    if meta.requires_grad and not (meta.dtype.is_floating_point or meta.dtype.is_complex):
        raise SerializeError(f"{meta.what} cannot require grad")
    t = elements.as_strided(meta.sizes, meta.strides, meta.offset).to(meta.device)
    return Parameter(t, requires_grad=meta.requires_grad) if is_param else t.requires_grad_(meta.requires_grad)
