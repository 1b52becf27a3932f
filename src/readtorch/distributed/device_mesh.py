"""`DeviceMesh`: the ranks as a grid, with a process group along each of its dimensions.

In PyTorch: `torch/distributed/device_mesh.py`.
"""

import os
import threading
import warnings

import readtorch
from readtorch.csrc.distributed.process_group import ProcessGroup

from ._mesh_layout import _MeshLayout
from .distributed_c10d import (
    _get_default_group,
    _resolve_process_group,
    current,
    get_backend,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
    new_group,
)

__all__ = ["init_device_mesh", "DeviceMesh"]


class _MeshEnv(threading.local):
    """The meshes whose `with` blocks this thread is in."""

    def __init__(self):
        self.mesh_stack = []

    def get_current_mesh(self):
        if not self.mesh_stack:
            raise RuntimeError("No device mesh is currently active!")
        return self.mesh_stack[-1]


_mesh_resources = _MeshEnv()


def _get_device_handle(device_type="cuda"):
    """The module of a type of devices, `readtorch.cuda` say, or None."""
    return getattr(readtorch, device_type, None)


class DeviceMesh:
    """Ranks as a grid of any number of dimensions. Each rank is in one process group along each dimension.

    device_type: "cpu" or "cuda", without an index. mesh: the global ranks, as a tensor or as nested lists; the same on all ranks, which
    must all make it. mesh_dim_names: a name for each dimension, by which `mesh["tp"]` is the grid of that dimension alone.
    As a context manager it is the mesh of functions of `distributed.tensor` that are called without one.
    """

    def __init__(
        self,
        device_type,
        mesh=None,
        *,
        mesh_dim_names=None,
        backend_override=None,
        _init_backend=True,
        _rank=None,
        _layout=None,
        _rank_map=None,
        _root_mesh=None,
    ):
        if mesh is not None:
            if _layout is not None or _rank_map is not None:
                raise TypeError("Cannot provide _layout and/or _rank_map if passing explicit mesh")
            mesh = mesh.detach().cpu() if isinstance(mesh, readtorch.Tensor) else readtorch.tensor(mesh)
            mesh = mesh.to(readtorch.int).contiguous()
            _layout, _rank_map = _MeshLayout.from_sizes_strides(tuple(mesh.shape)), tuple(mesh.flatten().tolist())
        elif _layout is None or _rank_map is None:
            raise TypeError("The mesh argument is required except for PRIVATE USAGE ONLY!")
        _check_layout(_layout, _rank_map)
        self._device_type, self._layout, self._flatten_rank_map = device_type, _layout, tuple(_rank_map)
        self._mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        self._root_mesh, self._flatten_mapping = _root_mesh, {}
        overrides = _checked_overrides(backend_override, _layout)
        if _init_backend:
            self._setup_world_group_and_device()
            self._dim_group_names = self._init_process_groups(_layout, self._mesh_dim_names, overrides)
        threads = is_initialized() and get_backend() == "threads"
        self._world_number = current.world.number
        self._thread_id = self._world_number if threads else None  # meshes of two ranks are not one
        self._rank = get_rank() if _rank is None else _rank
        self._coordinate_on_dim = self._compute_coordinate_on_dim()
        self._hash = hash(self._hash_key())

    # ------------------------------------------------------------------------- making it

    def _setup_world_group_and_device(self):
        if not is_initialized():
            init_process_group()
        world_size = get_world_size()
        if self._layout.numel() > world_size:
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {world_size}, but found {self._layout.numel()} ranks!"
            )
        handle = _get_device_handle(self._device_type)
        if handle and not handle.is_initialized():
            self._choose_device(handle, world_size)
        return _get_default_group()

    def _choose_device(self, handle, world_size):
        """The device of a rank that has chosen none: the launcher's number, else the rank's, counted around."""
        if "LOCAL_RANK" in os.environ:
            handle.set_device(int(os.environ["LOCAL_RANK"]))
            return
        devices = handle.device_count()
        if devices == 0:
            return
        warnings.warn(
            "It seems like you did not set/select the default device for the current process before the DeviceMesh "
            "initialization or use a launcher (i.e. torchrun) which populates `LOCAL_RANK` environment variable. "
            "It is recommended to set the current device for the process BEFORE the DeviceMesh initialization so that "
            "the underlying communicator (i.e. NCCL) can be initialized properly. "
            "Given that the current process has no default device selected, DeviceMesh will use a heuristic to set the "
            "device_id via `global_rank % num_devices_per_host`, assuming homogeneous hardware cluster. ",
            stacklevel=4,
        )
        if world_size > devices and world_size % devices != 0:
            raise RuntimeError(
                f"DeviceMesh only support homogeneous hardware, but found {world_size} ranks and {devices} "
                f"{self._device_type} devices!"
            )
        handle.set_device(get_rank() % devices)

    def _init_process_groups(self, layout, names, overrides):
        """The names of this rank's groups, one along each dimension; none if it is not in the mesh."""
        groups = [
            self._init_one_process_group(axis, names[dim] if names else f"dim_{dim}", overrides[dim])
            for dim, axis in enumerate(layout)
        ]
        return [name for name in groups if name is not None]

    def _init_one_process_group(self, axis, dim_name, backend):
        if axis.numel() == get_world_size() and backend is None:
            return _get_default_group().group_name
        mine = None
        for ranks in axis.global_ranks(len(self._flatten_rank_map)):
            ranks = [self._flatten_rank_map[r] for r in ranks]
            group = new_group(ranks=ranks, backend=backend, group_desc=f"mesh_{dim_name}")
            if get_rank() in ranks:
                mine = group.group_name
        return mine

    def _compute_coordinate_on_dim(self):
        places = (self._full_mesh() == self._rank).nonzero().tolist()
        return tuple(places[0][1:]) if places else None

    def _full_mesh(self):
        """All ranks of the root mesh, as grids of this one's shape."""
        groups = self._layout.collapse().global_ranks(len(self._flatten_rank_map))
        ranks = [[self._flatten_rank_map[r] for r in group] for group in groups]
        return readtorch.tensor(ranks, dtype=readtorch.int).view(-1, *self._layout.top_level_sizes)

    # ------------------------------------------------------------------------- what it says of itself

    @property
    def device_type(self):
        """The type of its devices."""
        return self._device_type

    @property
    def mesh(self):
        """The global ranks, as a tensor."""
        full = self._full_mesh()
        if len(full) == 1:
            return full[0]
        mine = (full == get_rank()).nonzero()
        if len(mine) == 0:
            raise RuntimeError(
                "In order to get the mesh Tensor of a DeviceMesh it needs to either have all its original dimensions "
                "(e.g., no slicing) or it needs to contain the local rank"
            )
        return full[int(mine[0, 0])]

    @property
    def mesh_dim_names(self):
        """The names of its dimensions, or None."""
        return self._mesh_dim_names

    @property
    def ndim(self):
        """How many dimensions it has."""
        return len(self._layout)

    @property
    def shape(self):
        """How many ranks stand along each dimension."""
        return self._layout.top_level_sizes

    def size(self, mesh_dim=None):
        """How many ranks stand along a dimension, or in all."""
        return self._layout.numel() if mesh_dim is None else self._layout[mesh_dim].numel()

    def get_rank(self):
        """The global rank of the caller."""
        return get_rank()

    def get_coordinate(self):
        """Where the caller stands along each dimension; None if it is not in the mesh."""
        return self._coordinate_on_dim

    def get_local_rank(self, mesh_dim=None):
        """Where the caller stands along one dimension: an index, a name, or nothing where there is only one."""
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
            )
        return get_rank(self.get_group(0 if mesh_dim is None else mesh_dim))

    def _is_current_rank_part_of_mesh(self):
        return self._coordinate_on_dim is not None

    def _get_root_mesh(self):
        """The mesh that this one is a slice of, or itself."""
        return self._root_mesh or self

    def __repr__(self):
        sizes = self._layout.top_level_sizes
        if self._mesh_dim_names:
            named = (f"{name}={size}" for name, size in zip(self._mesh_dim_names, sizes, strict=True))
            sizes = f"({', '.join(named)})"
        stride = tuple(axis.stride[0] if len(axis.stride) == 1 else axis.stride for axis in self._layout)
        detail = f", Mesh: {self.mesh.tolist()}" if os.environ.get("TORCH_DISTRIBUTED_DEBUG", "") == "DETAIL" else ""
        return f"DeviceMesh({sizes}, '{self.device_type}', stride={stride}{detail})"

    def _hash_key(self):
        return self._flatten_rank_map, self._layout, self._device_type, self._mesh_dim_names, self._thread_id

    def __setstate__(self, state):
        """state: also one that PyTorch wrote, which knows no number of the world."""
        self.__dict__.update({"_world_number": current.world.number, "_thread_id": None} | state)
        self._hash = hash(self._hash_key())

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        if self is other:
            return True
        return isinstance(other, DeviceMesh) and self._hash_key() == other._hash_key()

    def __enter__(self):
        _mesh_resources.mesh_stack.append(self)
        return self

    def __exit__(self, *exc):
        _mesh_resources.mesh_stack.pop()

    # ------------------------------------------------------------------------- groups

    def get_group(self, mesh_dim=None):
        """The process group of the caller along a dimension: an index, a name, or nothing where there is only one."""
        if not hasattr(self, "_dim_group_names"):
            raise RuntimeError("DeviceMesh process groups not initialized!")
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                "If you want to get the list of all the ProcessGroups in the DeviceMesh,"
                "please use `get_all_groups()` instead.",
            )
        flattened = self._get_root_mesh()._flatten_mapping
        if mesh_dim in flattened:
            return _resolve_process_group(flattened[mesh_dim]._dim_group_names[0])
        if isinstance(mesh_dim, str):
            mesh_dim = self._get_mesh_dim_by_name(mesh_dim)
        return _resolve_process_group(self._dim_group_names[mesh_dim or 0])

    def get_all_groups(self):
        """The process groups of the caller along each dimension."""
        return [self.get_group(i) for i in range(self.ndim)]

    def _get_mesh_dim_by_name(self, mesh_dim_name):
        if not self._mesh_dim_names:
            raise KeyError("No `mesh_dim_names` found.")
        if mesh_dim_name not in self._mesh_dim_names:
            raise KeyError(
                f"Mesh dimension '{mesh_dim_name}' does not exist.",
                f"Available mesh dimensions are: mesh_dim_names={self._mesh_dim_names}",
            )
        return self._mesh_dim_names.index(mesh_dim_name)

    # ------------------------------------------------------------------------- meshes made from it

    def __getitem__(self, mesh_dim_names):
        """The grid of some dimensions, by name, in which the caller stands."""
        if not self._mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else mesh_dim_names
        if names == self._mesh_dim_names:
            return self
        sources = self._sources_of_slices()
        if not all(name in sources for name in names):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {list(sources)}.")
        layout = _MeshLayout(sources[name][0] for name in names)
        if not layout.collapse().check_sorted():
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be in ascending order.")
        if not layout.collapse().check_orthogonal():
            raise RuntimeError(f"Slicing overlapping dim_names {names} is not allowed.")
        groups = [sources[name][1] for name in names] if self._dim_group_names else []
        return self._related(layout, tuple(names), groups)

    def _sources_of_slices(self):
        """{name: (layout of the dimension, name of its group)}"""
        groups = self._dim_group_names or [None] * self.ndim
        sources = dict(zip(self._mesh_dim_names, zip(self._layout, groups, strict=True), strict=True))
        if self is self._get_root_mesh():
            for name, mesh in self._flatten_mapping.items():
                sources[name] = mesh._layout[0], (mesh._dim_group_names or [None])[0]
        return sources

    def _related(self, layout, names, groups):
        """A mesh over the same ranks whose groups are there already."""
        mesh = DeviceMesh(
            self._device_type,
            _layout=layout,
            _rank_map=self._flatten_rank_map,
            mesh_dim_names=names,
            _root_mesh=self._get_root_mesh(),
            _init_backend=False,
        )
        mesh._dim_group_names = groups
        return mesh

    def _flatten(self, mesh_dim_name=None, backend_override=None):
        """The mesh of one dimension with the same ranks; afterwards the root mesh knows it by its name."""
        if not self._mesh_dim_names:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name, root = mesh_dim_name or "_".join(self._mesh_dim_names), self._get_root_mesh()
        if self.ndim == 1 and name in self._mesh_dim_names:
            return self
        if name in root._mesh_dim_names:
            raise ValueError(
                f"{name} already exists for submesh of the {root}. ",
                f"The mesh_dim_names of submesh and flattened mesh are {root._mesh_dim_names}. "
                "Please specify another valid mesh_dim_name.",
            )
        layout = _MeshLayout([self._layout.collapse()])
        if name not in root._flatten_mapping:
            root._flatten_mapping[name] = DeviceMesh(
                root._device_type,
                _layout=layout,
                _rank_map=root._flatten_rank_map,
                mesh_dim_names=(name,),
                _root_mesh=root,
                backend_override=(backend_override,),
            )
        elif root._flatten_mapping[name]._layout != layout:
            raise ValueError(
                f"Flatten mesh with mesh_dim_name {name} has been created before, Please specify another valid mesh_dim_name."
            )
        return root._flatten_mapping[name]

    def _unflatten(self, dim, mesh_sizes, mesh_dim_names, backend_override=None):
        """The mesh in which one dimension is several, of these sizes and names."""
        if isinstance(dim, int) and dim >= self.ndim:
            raise ValueError(f"dim {dim} specified in `_unflatten` is out of range {self.ndim}")
        if isinstance(dim, str) and dim not in self._mesh_dim_names:
            raise ValueError(f"dim {dim} specified in `_unflatten` is not in {self.mesh_dim_names}")
        if len(mesh_sizes) != len(mesh_dim_names):
            raise RuntimeError("mesh_dim_names must have same length as mesh_sizes in _unflatten!")
        dim = self._mesh_dim_names.index(dim) if isinstance(dim, str) else dim
        count = _MeshLayout.from_sizes_strides(tuple(mesh_sizes)).numel()
        if count != self.size(dim):
            raise ValueError(
                f"The product of {mesh_sizes=} is {count}, but the original dimension at dim={dim} has size {self.size(dim)}. "
                "These must be equal for unflatten to work correctly."
            )
        parts = _MeshLayout(self._layout[dim].split(mesh_sizes))
        layout, names, groups = list(self._layout), list(self._mesh_dim_names), list(self._dim_group_names)
        overrides = [(backend_override or {}).get(name) for name in mesh_dim_names]
        layout[dim : dim + 1], names[dim : dim + 1] = parts, mesh_dim_names
        groups[dim : dim + 1] = self._init_process_groups(parts, mesh_dim_names, overrides)
        return self._related(_MeshLayout(layout), tuple(names), groups)

    @staticmethod
    def _concatenate(device_mesh_list):
        """The mesh with the dimensions of several slices of one mesh."""
        first = device_mesh_list[0]
        if any(mesh._flatten_rank_map != first._flatten_rank_map for mesh in device_mesh_list):
            raise RuntimeError("Cannot concatenate DeviceMeshes derived from different device meshs")
        layout = _MeshLayout(axis for mesh in device_mesh_list for axis in mesh._layout)
        if not layout.collapse().check_orthogonal():
            raise RuntimeError(f"Cannot concatenate overlapping meshes: {device_mesh_list}")
        names = tuple(name for mesh in device_mesh_list for name in mesh.mesh_dim_names)
        return first._related(layout, names, [name for mesh in device_mesh_list for name in mesh._dim_group_names])

    @staticmethod
    def from_group(group, device_type, mesh=None, *, mesh_dim_names=None):
        """A mesh over process groups that are there: one of one dimension over a group, one of several over a list of them.

        mesh: the ranks as a grid, needed for several groups, as mesh_dim_names is.
        """
        groups = [group] if isinstance(group, ProcessGroup) else list(group)
        if isinstance(group, ProcessGroup):
            ranks = get_process_group_ranks(group)
            if mesh is not None and readtorch.as_tensor(mesh).tolist() != ranks:
                raise ValueError(f"Invalid mesh {mesh!s} for ProcessGroup with ranks {ranks}")
            mesh = ranks
        elif not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        elif mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        elif mesh_dim_names is None:
            raise ValueError("Must pass mesh_dim_names if passing multiple ProcessGroups")
        mesh = readtorch.as_tensor(mesh)
        if mesh.ndim != len(groups):
            raise ValueError(
                "Expects mesh with ndim equal to number of ProcessGroups but got "
                f"mesh {mesh.tolist()} and {len(groups)} ProcessGroups"
            )
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        made._dim_group_names = [group.group_name for group in groups]
        return made


def _check_layout(layout, rank_map):
    if not layout.collapse().check_orthogonal():
        raise AssertionError("Please use a non-overlapping layout when creating a DeviceMesh.")
    if len(rank_map) < layout.cosize():
        raise AssertionError(
            f"The rank map contains {len(rank_map)} element, which isn't large enough for layout {layout}"
        )


def _checked_overrides(overrides, layout):
    if overrides is None:
        return (None,) * len(layout)
    if len(overrides) != len(layout):
        raise ValueError(
            "backend_override should have the same length as the number of mesh dimensions, "
            f"but got {len(overrides)} and {len(layout)}."
        )
    return overrides


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, backend_override=None):
    """A mesh of the ranks 0, 1, 2 … as a grid of this shape, numbered row by row. Every rank must call it.

    Joins the process group of all ranks first, if there is none. mesh_dim_names: a name for each dimension. backend_override: the
    backend of the groups along some dimensions, {name or index: backend}.
    """
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}"
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! "
                f"Found len(mesh_dim_names): {len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}."
            )
    overrides = _normalize_backend_override(backend_override, len(mesh_shape), mesh_dim_names or ())
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    layout = _MeshLayout.from_sizes_strides(tuple(mesh_shape))
    return DeviceMesh(
        device_type,
        _layout=layout,
        _rank_map=range(layout.numel()),
        mesh_dim_names=mesh_dim_names,
        backend_override=overrides,
    )


def _normalize_backend_override(override, ndim, names):
    """The backend of each dimension, or None."""
    if override is None:
        return None
    rest, found = dict(override), []
    for index in range(ndim):
        name = names[index] if names else None
        if name in rest and index in rest:
            raise RuntimeError(f"Found redundant dim index {index} and name {name} in backend_override")
        found.append(rest.pop(name, None) or rest.pop(index, None))
    if rest:
        raise RuntimeError(
            f"Found invalid keys in backend_override: got {list(rest)}, "
            f"expected integers in range [0, {ndim}) or one of {tuple(names)}"
        )
    return found
