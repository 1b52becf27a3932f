"""Bring PyTorch's source beside the book: the C++ files that it quotes and no wheel ships.

    python3 tools/pytorch_source.py [--once] [--from git|debian] [--seconds N] FOLDER

From PyTorch's repository at the release's tag; on Debian and Ubuntu else Debian's source package, which is older. Nothing is
installed, and apt's own lists stay as they are. `--once`: not again where it has failed before, and no word about a failure.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TAG = "v2.13.0"
REPOSITORY = "https://github.com/pytorch/pytorch"
FOLDERS = ("aten/src/ATen", "c10", "caffe2/serialize", "torch/csrc", "tools/autograd")
ROOMS = (*FOLDERS, "version.txt", "LICENSE", "NOTICE")
DEBIAN, SUITE, KEYRING = "http://deb.debian.org/debian", "trixie", "/usr/share/keyrings/debian-archive-keyring.gpg"


def by_git(folder, run):
    """The release's tag: one commit, and of it these folders only."""
    run("git", "clone", "--quiet", "--depth=1", f"--branch={TAG}", "--filter=blob:none", "--sparse", REPOSITORY, folder)
    run("git", "-C", folder, "sparse-checkout", "set", "--no-cone", *(f"/{room}" for room in ROOMS))
    shutil.rmtree(Path(folder) / ".git")


def by_debian(folder, run):
    """Debian's source package, by apt with a list and a state folder of its own; apt checks the signatures."""
    if not shutil.which("apt-get") or not Path(KEYRING).exists():
        raise FileNotFoundError("apt and Debian's keyring are not here")
    with tempfile.TemporaryDirectory() as state:
        for name in ("lists/partial", "archives/partial", "source"):
            Path(state, name).mkdir(parents=True)
        sources = Path(state, "sources.list")
        sources.write_text(f"deb-src [signed-by={KEYRING}] {mirror()} {SUITE} main\n")
        options = {
            "Dir::Etc::SourceList": sources,
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::State::Lists": f"{state}/lists",
            "Dir::Cache": state,
            "APT::Sandbox::User": "",
        }
        apt = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in options.items())]
        run(*apt, "update")
        run(*apt, "source", "--download-only", "pytorch", cwd=f"{state}/source")
        [archive] = Path(state, "source").glob("*.orig.tar.*")
        run(
            "tar",
            "-xf",
            archive,
            "-C",
            folder,
            "--strip-components=1",
            "--wildcards",
            "--no-wildcards-match-slash",
            *(f"*/{room}" for room in ROOMS),
        )


def mirror():
    """Where this machine's apt gets Debian from."""
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    done = subprocess.run(asked, capture_output=True, text=True)
    found = [line.rstrip("/") for line in done.stdout.split() if line.rstrip("/").endswith("/debian")]
    return found[0] if found else DEBIAN


WAYS = {"git": by_git, "debian": by_debian}


def bring(folder, ways, seconds):
    """The first way that works fills the folder; returns what went wrong, or None."""
    problems = []
    for way in ways:

        def run(*command, **options):
            subprocess.run(
                [str(part) for part in command],
                check=True,
                timeout=seconds,
                capture_output=True,
                text=True,
                env=os.environ | {"GIT_TERMINAL_PROMPT": "0"},
                **options,
            )

        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            new = Path(place, "source")
            new.mkdir()
            try:
                WAYS[way](new, run)
                (new / "version.txt").read_text()
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                stderr = getattr(error, "stderr", None)  # bytes, and cut short, if the time was over
                said = (stderr if stderr and isinstance(stderr, str) else str(error)).strip().splitlines()
                problems.append(f"{way}: {said[-1] if said else type(error).__name__}")
            else:
                if folder.exists():
                    shutil.rmtree(folder)
                new.rename(folder)
                return None
    return "; ".join(problems)


def is_complete(folder):
    """Whether it holds all that is brought today: an older edition of the book may have wanted less."""
    return (folder / "version.txt").exists() and all((folder / name).is_dir() for name in FOLDERS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--from", dest="ways", choices=WAYS, action="append", help="only this way")
    parser.add_argument("--seconds", type=float, default=600, help="time limit of each step")
    parser.add_argument("--once", action="store_true")
    options = parser.parse_args()
    folder, failed = options.folder, options.folder.with_name(f"{options.folder.name}.failed")
    if is_complete(folder) or os.environ.get("READTORCH_PYTORCH_SOURCE") or options.once and failed.exists():
        return 0
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        problem = bring(folder, options.ways or list(WAYS), options.seconds)
    except OSError as error:  # of the folder itself: it cannot be written to
        problem = str(error)
    if problem is None:
        with contextlib.suppress(OSError):
            failed.unlink()
        print(f"PyTorch's source, {(folder / 'version.txt').read_text().strip()}, is in {folder}")
        return 0
    with contextlib.suppress(OSError):
        failed.write_text(problem + "\n")
    if options.once:
        return 0
    print(f"PyTorch's source could not be brought: {problem}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
