"""Models from a folder that has a `hubconf.py`, and weights from a URL. In PyTorch: `torch/hub.py`.

A `hubconf.py` is a Python file whose public callables are entry points: `load` imports it, with its folder first on the path, and
calls one. It is a stranger's code, so a repository by name is asked about first. Here it must be in the hub's folder already:
PyTorch downloads it from GitHub, readtorch says where it belongs.
"""

import contextlib
import hashlib
import importlib.util
import os
import pathlib
import re
import shutil
import sys
import uuid
import warnings
import zipfile
from urllib.parse import urlparse

import readtorch

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # bfd8deac of resnet18-bfd8deac.pth
READ_DATA_CHUNK = 128 * 1024
MODULE_HUBCONF = "hubconf.py"
_TRUSTED_REPO_OWNERS = "facebookresearch", "facebookincubator", "pytorch", "fairinternal"
_hub_dir = None


class RepositoryNotFoundError(RuntimeError):
    """A repository would have to be downloaded from GitHub. PyTorch does; here one clones it oneself."""


# --------------------------------------------------------------------------------------------- the hub's folder


def _get_torch_home():
    """The folder of all that is downloaded: `$TORCH_HOME`, else `torch` in the user's cache."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir():
    """The folder of repositories and weights: what `set_dir` said, else `$TORCH_HOME/hub`, which is `~/.cache/torch/hub`."""
    if os.getenv("TORCH_HUB"):
        warnings.warn("TORCH_HUB is deprecated, please use env TORCH_HOME instead", stacklevel=2)
    if _hub_dir is not None:
        return _hub_dir
    return os.path.join(_get_torch_home(), "hub")


def set_dir(d):
    """Use this folder from now on."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


# ------------------------------------------------------------------------------------- repositories, and trust


def _parse_repo_info(github):
    """Owner, name and ref of "owner/name[:ref]"; without a ref that of the folder that is there."""
    info, _, ref = github.partition(":")
    owner, name = info.split("/")
    # in PyTorch: GitHub is asked which of the two is the default branch; so it goes without a connection.
    found = [branch for branch in ("main", "master") if os.path.exists(f"{get_dir()}/{owner}_{name}_{branch}")]
    if not ref and not found:
        raise RuntimeError(
            f"It looks like there is no internet connection and the repo could not be found in the cache ({get_dir()})"
        )
    return owner, name, ref or found[0]


def _get_cache_or_reload(github, force_reload, trust_repo, verbose=True, skip_validation=False):
    """The folder of a repository in the hub's folder, if it is trusted. RepositoryNotFoundError if it is not there."""
    hub_dir = get_dir()
    os.makedirs(hub_dir, exist_ok=True)
    owner, name, ref = _parse_repo_info(github)
    folder = "_".join([owner, name, ref.replace("/", "_")])
    _check_repo_is_trusted(owner, name, folder, trust_repo)
    repo_dir = os.path.join(hub_dir, folder)
    if force_reload or not os.path.exists(repo_dir):
        raise RepositoryNotFoundError(
            f"readtorch.hub downloads no repositories: clone https://github.com/{owner}/{name} at {ref} into {repo_dir}, or "
            'anywhere, and pass that folder with source="local"'
        )
    if verbose:
        sys.stderr.write(f"Using cache found in {repo_dir}\n")
    return repo_dir


def _check_repo_is_trusted(owner, name, folder, trust_repo):
    """Ask the user, unless the repository is on the list, is there already, or `trust_repo` is True; then put it on the list."""
    hub_dir, owner_name = get_dir(), f"{owner}_{name}"
    trusted = pathlib.Path(hub_dir) / "trusted_list"
    trusted.touch()
    is_trusted = (
        owner_name in trusted.read_text().split("\n")
        or folder in next(os.walk(hub_dir))[1]
        or owner in _TRUSTED_REPO_OWNERS
    )
    if trust_repo is False or trust_repo == "check" and not is_trusted:
        response = input(
            f"The repository {owner_name} does not belong to the list of trusted repositories and as such cannot be downloaded. "
            "Do you trust this repository and wish to add it to the trusted list of repositories (y/N)?"
        )
        if response.lower() in ("n", "no", ""):
            raise Exception("Untrusted repository.")
        if response.lower() not in ("y", "yes"):
            raise ValueError(f"Unrecognized response {response}.")
        if is_trusted:
            print("The repository is already trusted.")
    if not is_trusted:
        with trusted.open("a") as file:
            file.write(owner_name + "\n")


# ------------------------------------------------------------------------------------------------- entry points


@contextlib.contextmanager
def _add_to_sys_path(path):
    sys.path.insert(0, path)
    try:
        yield
    finally:
        sys.path.remove(path)


def _import_hubconf(folder):
    """Run `hubconf.py`. Anew at each call: the module is kept nowhere."""
    spec = importlib.util.spec_from_file_location(MODULE_HUBCONF, os.path.join(folder, MODULE_HUBCONF))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load_entry_from_hubconf(module, model):
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    missing = [name for name in getattr(module, "dependencies", None) or () if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    entry = getattr(module, model, None)
    if not callable(entry):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return entry


def list(github, force_reload=False, skip_validation=False, trust_repo="check", verbose=True):
    """The names of a repository's entry points: the callables of its `hubconf.py` that do not begin with an underscore.

    github: "owner/name[:ref]", which must be in the hub's folder. trust_repo: True takes its code as trusted, False asks, "check"
    asks if it is neither there nor on the list of trusted ones. Raises RepositoryNotFoundError where PyTorch would download it.
    """
    repo_dir = _get_cache_or_reload(github, force_reload, trust_repo, verbose, skip_validation)
    with _add_to_sys_path(repo_dir):
        module = _import_hubconf(repo_dir)
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo="check"):
    """The docstring of an entry point. The arguments are those of `list`."""
    repo_dir = _get_cache_or_reload(github, force_reload, trust_repo, True, skip_validation)
    with _add_to_sys_path(repo_dir):
        module = _import_hubconf(repo_dir)
    return _load_entry_from_hubconf(module, model).__doc__


def load(
    repo_or_dir,
    model,
    *args,
    source="github",
    trust_repo="check",
    force_reload=False,
    verbose=True,
    skip_validation=False,
    **kwargs,
):
    """What the entry point `model` returns for `args` and `kwargs`.

    repo_or_dir: a folder with a `hubconf.py`, if `source` is "local"; else "owner/name[:ref]" as in `list`, whose arguments the
    others are. Raises ValueError for another source, RuntimeError for an entry point or dependencies that are missing.
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        repo_or_dir = _get_cache_or_reload(repo_or_dir, force_reload, trust_repo, verbose, skip_validation)
    return _load_local(repo_or_dir, model, *args, **kwargs)


def _load_local(hubconf_dir, model, *args, **kwargs):
    with _add_to_sys_path(hubconf_dir):
        entry = _load_entry_from_hubconf(_import_hubconf(hubconf_dir), model)
        return entry(*args, **kwargs)


# ------------------------------------------------------------------------------------------------------ weights


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Copy what is at a URL (`file:`, `https:` …) to the file `dst`, which appears when all of it has come.

    hash_prefix: with what its SHA256 must begin; RuntimeError if it does not. progress: show a bar on stderr.
    """
    from urllib.request import Request, urlopen  # with http and ssl behind it, which `import readtorch` can do without

    dst = os.path.expanduser(dst)
    partial = f"{dst}.{uuid.uuid4().hex}.partial"
    digest, done = hashlib.sha256(), 0
    try:
        with open(partial, "wb") as file, urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as source:
            length = source.headers.get("Content-Length")
            while chunk := source.read(READ_DATA_CHUNK):
                file.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                if progress:
                    _show(done, length)
        if progress:
            sys.stderr.write("\n")
        if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
        shutil.move(partial, dst)
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def _show(done, length):
    # in PyTorch: tqdm's bar, where that is installed
    sys.stderr.write(f"\r{done:.1f} bytes" if length is None else f"\r{100 * done / float(length):.1f}%")
    sys.stderr.flush()


def load_state_dict_from_url(
    url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None, weights_only=False
):
    """What `load` reads from the file at a URL, which is downloaded once, to `model_dir` (`checkpoints` in the hub's folder).

    check_hash: the file's name must have the first digits of its SHA256, "name-<digits>.pth"; RuntimeError if they are others.
    file_name: another name for the copy. map_location, weights_only: as for `readtorch.load`.
    """
    if os.getenv("TORCH_MODEL_ZOO"):
        warnings.warn("TORCH_MODEL_ZOO is deprecated, please use env TORCH_HOME instead", stacklevel=2)
    model_dir = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(model_dir, exist_ok=True)
    name = os.path.basename(urlparse(url).path) if file_name is None else file_name
    cached_file = os.path.join(model_dir, name)
    if not os.path.exists(cached_file):
        sys.stdout.write(f'Downloading: "{url}" to {cached_file}\n')
        digits = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, cached_file, digits and digits.group(1), progress)
    if _is_legacy_zip_format(cached_file):
        return _legacy_zip_load(cached_file, model_dir, map_location, weights_only)
    return readtorch.load(cached_file, map_location=map_location, weights_only=weights_only)


def _is_legacy_zip_format(filename):
    """Whether somebody has zipped a file of the time before 1.6. (A file of today is a zip of several entries.)"""
    if not zipfile.is_zipfile(filename):
        return False
    with zipfile.ZipFile(filename) as archive:
        entries = archive.infolist()
    return len(entries) == 1 and not entries[0].is_dir()


def _legacy_zip_load(filename, model_dir, map_location, weights_only):
    warnings.warn(
        "Falling back to the old format < 1.6. This support will be deprecated in favor of default zipfile format introduced in "
        "1.6. Please redo torch.save() to save it in the new zipfile format.",
        FutureWarning,
        stacklevel=2,
    )
    with zipfile.ZipFile(filename) as archive:
        (entry,) = archive.infolist()
        _check_path(entry.filename)
        archive.extract(entry, model_dir)
    return readtorch.load(os.path.join(model_dir, entry.filename), map_location=map_location, weights_only=weights_only)


def _check_path(name):
    """ValueError for an entry that would be written outside of the folder."""
    path = os.path.normpath(name)
    if path.startswith(("/", "\\")) or re.match("[A-Za-z]:", path):
        raise ValueError(f"Archive entry has absolute path: {name}")
    if ".." in re.split(r"[/\\]", path):
        raise ValueError(f"Archive entry contains directory traversal: {name}")
