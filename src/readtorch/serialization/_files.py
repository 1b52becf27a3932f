"""Files that `save` and `load` are given: paths and file objects; how a save to a path is all or nothing.

In PyTorch: the openers of `torch/serialization.py`, which write to the path itself. Explained in the chapter
"state_dict, save and load".

Note [ A save is all or nothing ]

A program that dies while it writes leaves half a file, and if that overwrote the last checkpoint the training
is lost. So `save` writes a new file beside the old one and renames it when it is complete: to rename is one
step of the file system, and whoever opens the path sees the old file or the new one, never a part. Before
that the data is brought to the disk, so that a power cut cannot leave the new name without its contents
either.

A program that is killed leaves the new file, half done, and nobody will rename it. The next save of that path
removes it. It must not take the file that another process, or thread, is writing at the same time: so who
writes holds a lock on the file (`flock`), which the system takes away when the process is gone, however it
ended. A file that can be locked is a leftover if it also has such a name, is a regular file, not a link to one,
and belongs to the user who saves. Where there are no locks (some network file systems) leftovers stay.

A lock comes a moment after the file that it is on. Whoever saves in that moment takes the new file for a
leftover. So when the writer has its lock it looks whether the file still has its name, and makes another one if
not, or if somebody else has the lock; and it renames the file before it gives the lock back.

The new file gets the permissions that `open` gives, or those of the file that it replaces, and it has them before
anything is written: whoever must not read the old file may not read half of the new one. A symbolic link
stays one: the file that it leads to is replaced. What is no regular file, such as /dev/stdout or a pipe, is
written to directly.
"""

import contextlib
import fcntl
import io
import os
import re
import secrets
import stat


def is_path(name_or_file):
    return isinstance(name_or_file, (str, os.PathLike))


@contextlib.contextmanager
def open_for_reading(name_or_file):
    """The file of that name, or the file object itself. Raises its error, with advice, if it cannot seek."""
    if is_path(name_or_file):
        with open(name_or_file, "rb") as file:
            yield file
    else:
        _check_seekable(name_or_file)
        yield name_or_file


def _check_seekable(file):
    try:
        file.seek(file.tell())
    except (io.UnsupportedOperation, AttributeError) as error:
        if "seek" in str(error) or "tell" in str(error):
            raise type(error)(
                f"{error}. You can only torch.load from a file that is seekable. Please "
                "pre-load the data into a "
                "buffer like io.BytesIO and try to load from it instead."
            ) from None
        raise


def reads_directly(file):
    """Whether it is a file of the system, and not a compressed one."""
    if getattr(file, "__module__", None) == "gzip":
        return False
    try:
        return file.fileno() >= 0
    except (io.UnsupportedOperation, AttributeError):
        return False


@contextlib.contextmanager
def open_for_writing(name_or_file):
    """A file to write to. For a path it takes the path's place at the end of the block: Note [ A save is all
    or nothing ].
    """
    if not is_path(name_or_file):
        yield name_or_file
        if hasattr(name_or_file, "flush"):
            name_or_file.flush()
        return
    path = os.path.realpath(name_or_file)
    mode = _mode_of(path)
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:
            yield file
    else:
        with _replacing(path, mode) as file:
            yield file


def _mode_of(path):
    """The type and permissions of what is there, or None. Raises the error that `open` would raise."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode):
        os.close(os.open(path, os.O_WRONLY))  # a file that may not be written to may not be replaced either
    return mode


@contextlib.contextmanager
def _replacing(path, mode):
    _remove_leftovers(path)
    file, beside = _locked_file_beside(path, 0o666 if mode is None else 0o600)
    with file:
        try:
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(beside, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):  # interrupted after it was renamed
                os.unlink(beside)
            raise


# Eight digits of a hexadecimal number. One at least is a letter: model.pt.20261122.tmp may be somebody's.
_LEFTOVER = re.compile(r"\.(?=[0-9]*[a-f])[0-9a-f]{8}\.tmp")


def _locked_file_beside(path, mode):
    """A new file beside `path`, open and locked, and its name. mode: its permissions, less the umask."""
    while True:
        beside = f"{path}.{secrets.token_hex(4)}.tmp"
        if not _LEFTOVER.fullmatch(beside, len(path)):
            continue
        file = open(beside, "xb", opener=lambda name, flags: os.open(name, flags, mode))
        if _lock(file.fileno(), if_impossible=True) and _is_named(file.fileno(), beside):
            return file, beside
        file.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)


def _remove_leftovers(path):
    """Remove what saves of `path` left that were killed."""
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder)
    except OSError:
        return  # a folder may be closed to readers
    for other in names:
        if other.startswith(name) and _LEFTOVER.fullmatch(other, len(name)):
            _remove_if_left(os.path.join(folder, other))


def _remove_if_left(beside):
    try:
        descriptor = os.open(beside, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return  # a symbolic link, or another user's; or it is gone
    try:
        facts = os.fstat(descriptor)
        ours = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid()
        if ours and _lock(descriptor, if_impossible=False) and _is_named(descriptor, beside):
            os.unlink(beside)
    except OSError:
        pass  # it stays
    finally:
        os.close(descriptor)


def _lock(descriptor, if_impossible):
    """Whether this is the one lock on the file now; `if_impossible` where the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return if_impossible
    return True


def _is_named(descriptor, path):
    """Whether `path` is the open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False
