"""A checkpoint as a folder: a file a rank, and `.metadata`. In PyTorch: `torch/distributed/checkpoint/filesystem.py`.

A rank's file `__3_0.distcp` is what `readtorch.save` writes of each of its tensors, one behind the other; `.metadata` says
where each begins. It is written last, under another name, and then renamed: a folder with that file is a whole checkpoint.
PyTorch reads these folders, and we its own.
"""

import dataclasses
import io
import os
import uuid
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath

import readtorch
from readtorch.futures import Future

from . import _metadata_pickle
from .metadata import StorageMeta
from .planner import LoadItemType, WriteItemType
from .storage import StorageReader, StorageWriter, WriteResult
from .utils import _create_file_view, narrow_tensor_by_index

__all__ = ["FileSystem", "FileSystemReader", "FileSystemWriter"]

_metadata_fn = ".metadata"
CURRENT_DCP_VERSION = "1.0.0"
DEFAULT_SUFFIX = ".distcp"


@dataclasses.dataclass
class _StorageInfo:
    """Where an item lies."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: list[str] | None = None  # in PyTorch: extensions that changed the bytes

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclasses.dataclass
class _StoragePrefix:
    """How the names of a rank's files begin."""

    prefix: str


class FileSystem:
    """Files and folders of this machine."""

    def create_stream(self, path, mode):
        return Path(path).open(mode)

    def concat_path(self, path, suffix):
        return Path(path) / suffix

    def init_path(self, path):
        return Path(path)

    def rename(self, path, new_path):
        Path(path).rename(new_path)

    def mkdir(self, path):
        Path(path).mkdir(parents=True, exist_ok=True)

    def exists(self, path):
        return Path(path).exists()

    def rm_file(self, path):
        Path(path).unlink()

    def ls(self, path):
        return [str(entry) for entry in Path(path).iterdir()]

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Whether it is a path below a folder that one may write to, and no URL."""
        if isinstance(checkpoint_id, Path):
            return True
        if "://" in str(checkpoint_id):
            return False
        return any(folder.exists() and os.access(folder, os.W_OK) for folder in Path(checkpoint_id).parents)


class FileSystemWriter(StorageWriter):
    """Writes a checkpoint to the folder `path`.

    single_file_per_rank=False: a file an item. sync_files: wait until the files are on the disk. thread_count: how many
    files a rank writes at a time. overwrite=False: RuntimeError where a checkpoint is already.
    """

    def __init__(
        self,
        path,
        single_file_per_rank=True,
        sync_files=True,
        thread_count=1,
        per_thread_copy_ahead=10_000_000,
        cache_staged_state_dict=False,
        overwrite=True,
    ):
        super().__init__()
        self.fs = FileSystem()
        self.path = self.fs.init_path(path)
        self.single_file_per_rank = single_file_per_rank
        self.sync_files = sync_files
        self.thread_count = thread_count
        self.per_thread_copy_ahead = per_thread_copy_ahead
        self.cache_staged_state_dict = cache_staged_state_dict
        self.overwrite = overwrite
        self.save_id = str(uuid.uuid4())
        self.rank = None
        self.use_collectives = True

    def reset(self, checkpoint_id=None):
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        self.rank = kwargs.get("rank")
        self.use_collectives = kwargs.get("use_collectives", True)

    def _alone(self):
        """Whether this rank writes a checkpoint of its own, without the others."""
        return self.rank is not None and not self.use_collectives

    def prepare_local_plan(self, plan):
        self.fs.mkdir(self.path)
        if self.fs.exists(self._get_metadata_path(None if self.use_collectives else 0)):
            if not self.overwrite:
                raise RuntimeError(f"Checkpoint already exists and {self.overwrite=}.")
            warnings.warn(
                f"Detected an existing checkpoint in {self.path}, overwriting since {self.overwrite=}."
                " Past version 2.5 of PyTorch, `overwrite` will default to False. Set this variable to True to"
                " maintain this functionality or False to raise when an existing checkpoint is found.",
                stacklevel=2,
            )
        if self._alone():
            plan = dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{self.rank}_"))
        return plan

    def prepare_global_plan(self, plans):
        return [
            dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{rank}_")) if plan.storage_data is None else plan
            for rank, plan in enumerate(plans)
        ]

    def write_data(self, plan, planner):
        buckets = _split_by_size_and_type(self.thread_count, plan.items)
        if not self.single_file_per_rank:
            buckets = [[item] for item in plan.items]
        names = [f"{plan.storage_data.prefix}{i}{DEFAULT_SUFFIX}" for i in range(len(buckets))]
        done = Future()
        if self.thread_count == 1:
            written = [self._write_file(*file, planner) for file in zip(names, buckets)]
        else:
            with ThreadPoolExecutor(self.thread_count) as pool:
                written = list(pool.map(lambda name, items: self._write_file(name, items, planner), names, buckets))
        done.set_result([result for results in written for result in results])
        return done

    def _write_file(self, name, items, planner):
        """Write the items to one file: first what is no tensor."""
        with self.fs.create_stream(self.fs.concat_path(self.path, name), "wb") as stream:
            results = [
                _write_item(stream, planner.resolve_data(item), item, name)
                for item in sorted(items, key=lambda item: item.type != WriteItemType.BYTE_IO)
            ]
            self._sync(stream)
        return results

    def _sync(self, stream):
        stream.flush()
        if self.sync_files:
            os.fsync(stream.fileno())

    def finish(self, metadata, results):
        metadata.version = CURRENT_DCP_VERSION
        metadata.storage_data = {result.index: result.storage_data for per_rank in results for result in per_rank}
        metadata.storage_meta = self.storage_meta()
        path = self._get_metadata_path(self.rank if self._alone() else None)
        unfinished = path.with_name(path.name + ".tmp")
        with self.fs.create_stream(unfinished, "wb") as stream:
            _metadata_pickle.dump(metadata, stream)
            self._sync(stream)
        if self.fs.exists(path):  # of an earlier checkpoint
            self.fs.rm_file(path)
        self.fs.rename(unfinished, path)

    def storage_meta(self):
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self.save_id)

    def _get_metadata_path(self, rank=None):
        return self.fs.concat_path(self.path, _metadata_fn if rank is None else f"__{rank}{_metadata_fn}")

    @property
    def checkpoint_id(self):
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return FileSystem.validate_checkpoint_id(checkpoint_id)


def _split_by_size_and_type(bins, items):
    """The items in `bins` lists of about as many bytes."""
    if bins == 1:
        return [items]
    buckets, sizes = [[] for _ in range(bins)], [0] * bins
    for i, item in enumerate(item for item in items if item.type == WriteItemType.BYTE_IO):
        buckets[i % bins].append(item)
    tensors = [item for item in items if item.type != WriteItemType.BYTE_IO]
    for item in sorted(tensors, key=lambda item: item.tensor_storage_size(), reverse=True):
        smallest = min(range(bins), key=sizes.__getitem__)
        buckets[smallest].append(item)
        sizes[smallest] += item.tensor_storage_size()
    return buckets


def _write_item(stream, data, item, name):
    offset = stream.tell()
    if item.type == WriteItemType.BYTE_IO:
        stream.write(data.getbuffer())
    else:
        _save_tensor(data, stream)
    length = stream.tell() - offset
    return WriteResult(item.index, length, _StorageInfo(name, offset, length))


def _save_tensor(tensor, stream):
    """As `readtorch.save` writes it, without those elements of its storage that it does not look at."""
    tensor = tensor.detach().cpu()
    if tensor.untyped_storage().size() != tensor.nbytes:
        tensor = tensor.clone()
    data = io.BytesIO()  # an archive counts its positions from its own beginning
    readtorch.save(tensor, data)
    stream.write(data.getbuffer())


class FileSystemReader(StorageReader):
    """Reads the checkpoint in the folder `path`, of whichever number of ranks."""

    def __init__(self, path):
        super().__init__()
        self.fs = FileSystem()
        self.path = self.fs.init_path(path)
        self.storage_data = {}
        self.load_id = str(uuid.uuid4())
        self.rank = None
        self.use_collectives = True

    def reset(self, checkpoint_id=None):
        self.storage_data = {}
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.load_id = str(uuid.uuid4())

    def read_metadata(self, *args, **kwargs):
        """See Note [ A checkpoint's metadata is a program too ]. With rank=…: what that rank wrote on its own."""
        with self.fs.create_stream(self._get_metadata_path(kwargs.get("rank")), "rb") as stream:
            metadata = _metadata_pickle.load(stream, _StorageInfo)
        if metadata.storage_meta is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        self.storage_data = metadata.storage_data
        self.rank = kwargs.get("rank")
        self.use_collectives = kwargs.get("use_collectives", True)
        if self.storage_data is None:
            raise AssertionError("storage_data must not be None in metadata")

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, plans):
        return plans

    def read_data(self, plan, planner):
        per_file = {}
        for item in plan.items:
            info = self.storage_data[item.storage_index]
            per_file.setdefault(info.relative_path, []).append((item, info))
        for relative_path, requests in per_file.items():
            with self.fs.create_stream(self._file(relative_path), "rb") as stream:
                for item, info in requests:
                    _read_item(item, info, stream, planner)
        done = Future()
        done.set_result(None)
        return done

    def _file(self, relative_path):
        """in PyTorch: wherever the metadata says; here within the folder."""
        if PurePath(relative_path).is_absolute() or ".." in PurePath(relative_path).parts:
            raise ValueError(f"the checkpoint's metadata names a file outside of it: {relative_path!r}")
        return self.fs.concat_path(self.path, relative_path)

    def _get_metadata_path(self, rank=None):
        return self.fs.concat_path(self.path, _metadata_fn if rank is None else f"__{rank}{_metadata_fn}")

    @property
    def checkpoint_id(self):
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return FileSystem.validate_checkpoint_id(checkpoint_id)


def _read_item(item, info, stream, planner):
    if info.transform_descriptors:
        raise ValueError(f"readtorch knows no extensions of checkpoints: {info.transform_descriptors}")
    part = _create_file_view(stream, info.offset, info.length)
    if item.type == LoadItemType.BYTE_IO:
        planner.load_bytes(item, io.BytesIO(part.read()))
        return
    saved = readtorch.load(part, map_location="cpu", weights_only=True)
    saved = narrow_tensor_by_index(saved, item.storage_offsets, item.lengths)
    target = planner.resolve_tensor(item).detach()
    if target.size() != saved.size():
        raise AssertionError(f"req {item.storage_index} mismatch sizes {target.size()} vs {saved.size()}")
    target.copy_(saved)
    planner.commit_tensor(item, target)
