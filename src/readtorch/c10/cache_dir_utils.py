"""Directories for compiled code, to which only their user can write.

Note [ Whose code runs ]
Machine code from a cache runs without a look, and a pickle is a program. So nothing is read from a directory unless it
is ours, no link, and closed to everyone else (mode 700), and no file in it unless it is ours and others cannot write to
it. A directory that somebody else has put there, in /tmp or wherever a setting points, is not used: kernels are
compiled in each process then.

A cache never stops a program. One that cannot be written to, is full or damaged is reported once, in a warning that
names it; what was to be read is computed.

In PyTorch: `torch/_inductor/runtime/cache_dir_utils.py` names the directory, and does not look whose it is.
"""

import errno
import functools
import os
import pathlib
import stat
import tempfile
import uuid
import warnings

# A link is not followed, and nobody waits for the other end of a pipe.
READING = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))

_reported = set()


def cache_directory(setting="NUMBA_CACHE_DIR", itself=False):
    """The directory for compiled code, made if need be; None if there is none that is ours alone.

    It is `readtorch_<user>` in the directory that the environment variable `setting` names, or that directory itself;
    without the setting, `readtorch/kernels` in the user's cache, or `readtorch_<user>` among the temporary files.
    """
    names = (setting, "XDG_CACHE_HOME", "HOME", "TMPDIR")
    path = _chosen(setting, itself, *map(os.environ.get, names))
    return path if path is not None and is_private(path, setting) else None


@functools.cache
def _chosen(setting, itself, *environment):
    """The first candidate that exists or can be made. environment: what the answer depends on."""
    for path in _candidates(setting, itself):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(0o700)
        except FileExistsError:
            pass
        except OSError as error:
            if os.environ.get(setting):
                warn_once(path, f"it cannot be made: {error}", f"Set {setting} to a directory of your own")
            continue
        return path
    if not os.environ.get(setting):
        warn_once("", "there is no directory that can be written to", f"Set {setting} to one")
    return None


def _candidates(setting, itself):
    own = f"readtorch_{os.geteuid() if hasattr(os, 'geteuid') else 'kernels'}"
    if os.environ.get(setting):
        chosen = pathlib.Path(os.environ[setting]).absolute()
        return [chosen if itself else chosen / own]
    found = [pathlib.Path(tempfile.gettempdir()) / own] if _has_temporary() else []
    try:
        home = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    except RuntimeError:  # a user of whom the system knows no home
        return found
    return [home / "readtorch" / "kernels", *found] if home.is_absolute() else found


def _has_temporary():
    try:
        return bool(tempfile.gettempdir())
    except FileNotFoundError:
        return False


def is_private(path, setting="NUMBA_CACHE_DIR"):
    """Whether only we can write to a directory. If not, a warning says so once."""
    why = why_not_private(path)
    if why:
        warn_once(
            path, why, f"Make it yours alone (chown, chmod 700), remove it, or set {setting} to a directory of your own"
        )
    return not why


def why_not_private(path):
    """What makes others able to write to a directory; None if nothing does."""
    try:
        info = os.lstat(path)
    except OSError as error:
        return str(error)
    if not stat.S_ISDIR(info.st_mode):
        return "it is a link" if stat.S_ISLNK(info.st_mode) else "it is no directory"
    return _foreign(info, 0o077)


def _foreign(info, closed):
    """Whose a file or directory is, if not ours; that it is open to others, if one of the bits `closed` is set."""
    if not hasattr(os, "geteuid"):  # Windows: a user's directories are the user's
        return None
    if info.st_uid != os.geteuid():
        return f"it belongs to user {info.st_uid}"
    return f"it is open to others (mode {stat.S_IMODE(info.st_mode):o})" if info.st_mode & closed else None


def read(path):
    """The bytes of a file in a private directory; None if there is none that can be trusted."""
    try:
        return read_private(path, 0o022)
    except FileNotFoundError:
        return None
    except OSError as error:
        warn_once(path, str(error), "Remove it")
        return None


def read_private(path, closed, most=-1):
    """The first `most` bytes of a plain file of this user that has none of the mode bits `closed`; OSError for any
    other.
    """
    descriptor = os.open(path, READING)
    info = os.fstat(descriptor)
    why = _foreign(info, closed) if stat.S_ISREG(info.st_mode) else "it is no plain file"
    if why:
        os.close(descriptor)
        raise PermissionError(errno.EACCES, why, path)
    with open(descriptor, "rb") as file:
        return file.read(most)


def write(path, data):
    """Write a whole file, or none. A warning says if it cannot be written."""
    beside = f"{path}.{uuid.uuid4().hex[:12]}"
    try:
        with open(
            os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600), "wb"
        ) as file:
            file.write(data)
        os.replace(beside, path)
    except OSError as error:
        warn_once(
            pathlib.Path(path).parent,
            f"it cannot be written to: {error.strerror or error}",
            "Make room there, or set NUMBA_CACHE_DIR to another directory",
        )
        try:
            os.unlink(beside)
        except OSError:
            pass


def warn_once(path, why, remedy):
    """A warning, once for a path."""
    if str(path) in _reported:
        return
    _reported.add(str(path))
    what = f"the cache of compiled kernels {path} is not used" if str(path) else "compiled kernels are not kept"
    warnings.warn(f"readtorch: {what}: {why}. Kernels are compiled anew. {remedy}.", stacklevel=3)
