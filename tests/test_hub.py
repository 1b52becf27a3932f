"""`torch.hub`: local folders, repositories that are there, trust, weights from `file:` URLs with their hash."""

import hashlib
import os
import pathlib
import sys
import textwrap
import zipfile

import pytest
import torch

import readtorch as rt

HUBCONF = '''
import helper

dependencies = ["json"]
VALUE = 3

def net(width, bias=True):
    """A net of some width."""
    return helper.NAME, width, bias

def _hidden():
    return 1

class Model:
    pass
'''


def write_repository(folder, hubconf=HUBCONF):
    folder.mkdir(parents=True)
    (folder / "hubconf.py").write_text(textwrap.dedent(hubconf))
    (folder / "helper.py").write_text("NAME = 'helper beside hubconf'\n")
    return str(folder)


@pytest.fixture(params=["torch", "readtorch"])
def in_library(request, tmp_path, monkeypatch):
    """A library, with a hub's folder of its own and no helper module left from a test before."""
    T = {"torch": torch, "readtorch": rt}[request.param]
    monkeypatch.delitem(sys.modules, "helper", raising=False)
    monkeypatch.setattr(T.hub, "_hub_dir", str(tmp_path / "hub"))
    yield T
    sys.modules.pop("helper", None)


def outcome(call, *folders):
    """The result, or the error's type and words, without the names of temporary folders."""
    try:
        result = call()
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    for folder in folders:
        result = result.replace(str(folder), "FOLDER") if isinstance(result, str) else result
    return result


def test_a_local_folder(in_library, tmp_path):
    folder = write_repository(tmp_path / "repository")
    assert in_library.hub.load(folder, "net", 7, source="LOCAL", bias=False) == ("helper beside hubconf", 7, False)
    assert type(in_library.hub.load(folder, "Model", source="local")).__name__ == "Model"
    assert folder not in sys.path


WRONG = {
    "source": lambda T, folder: T.hub.load(folder, "net", source="bitbucket"),
    "no entry": lambda T, folder: T.hub.load(folder, "nothing", source="local"),
    "no callable": lambda T, folder: T.hub.load(folder, "VALUE", source="local"),
    "no name": lambda T, folder: T.hub.load(folder, 3, source="local"),
    "dependencies": lambda T, folder: T.hub.load(
        write_repository(pathlib.Path(folder).parent / "b", "dependencies = ['no_such_a', 'no_such_b']"),
        "f",
        source="local",
    ),
    "no folder": lambda T, folder: T.hub.load(folder + "x", "net", source="local"),
    "name": lambda T, folder: T.hub.load("no-slash:main", "net"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors(case, tmp_path, monkeypatch):
    found = []
    for T in (torch, rt):
        monkeypatch.setattr(T.hub, "_hub_dir", str(tmp_path / T.__name__ / "hub"))
        folder = write_repository(tmp_path / T.__name__ / "repository")
        found.append(outcome(lambda: WRONG[case](T, folder), tmp_path / T.__name__))
    assert found[0] == found[1] and "Error: " in found[0]


@pytest.mark.parametrize("trust_repo", ["check", True, False])
@pytest.mark.parametrize("answer", ["y", "YES", "n", "", "perhaps"])
@pytest.mark.parametrize("owner, there", [("pytorch", True), ("somebody", True), ("somebody", False), ("known", True)])
def test_trust(trust_repo, answer, owner, there, tmp_path, monkeypatch, capsys):
    """The same questions, answers and list of trusted repositories. What is not there is downloaded by PyTorch only."""
    found = []
    for T in (torch, rt):
        hub = tmp_path / T.__name__
        monkeypatch.setattr(T.hub, "_hub_dir", str(hub))
        hub.mkdir()
        (hub / "trusted_list").write_text("known_vision\n")
        if there:
            write_repository(hub / f"{owner}_vision_v1")
        asked = []
        monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or answer)
        monkeypatch.setattr(torch.hub, "_validate_not_a_forked_repo", lambda *_: pytest.fail("network"))
        if not there:
            monkeypatch.setattr(torch.hub, "_validate_not_a_forked_repo", raise_not_there)
        result = outcome(lambda: T.hub.list(f"{owner}/vision:v1", trust_repo=trust_repo), hub)
        result = "not there" if "not there" in str(result) or "downloads no repositories" in str(result) else result
        said = [text.replace(str(hub), "FOLDER") for text in capsys.readouterr()]
        found.append((result, asked, (hub / "trusted_list").read_text(), said))
    assert found[0] == found[1]


def raise_not_there(*_):
    raise RuntimeError("not there")


def test_repositories_that_are_there(in_library, tmp_path, capsys):
    write_repository(tmp_path / "hub" / "pytorch_vision_feature_x")
    hub = in_library.hub
    assert hub.list("pytorch/vision:feature/x") == ["Model", "net"]
    assert hub.help("pytorch/vision:feature/x", "net") == "A net of some width."
    assert hub.load("pytorch/vision:feature/x", "net", 1, verbose=False)[1:] == (1, True)
    assert capsys.readouterr().err.count("Using cache found in") == 2


def test_the_default_branch_is_the_one_that_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(rt.hub, "_hub_dir", str(tmp_path))
    with pytest.raises(RuntimeError, match="no internet connection and the repo could not be found in the cache"):
        rt.hub.list("pytorch/vision")
    write_repository(tmp_path / "pytorch_vision_master")
    assert rt.hub.list("pytorch/vision") == ["Model", "net"]
    with pytest.raises(
        rt.hub.RepositoryNotFoundError, match='clone https://github.com/pytorch/vision at v2.*source="local"'
    ):
        rt.hub.load("pytorch/vision:v2", "net")
    with pytest.raises(rt.hub.RepositoryNotFoundError):
        rt.hub.load("pytorch/vision", "net", force_reload=True)


def test_where_the_hub_is(monkeypatch):
    for settings in (
        {},
        {"TORCH_HOME": "/a"},
        {"XDG_CACHE_HOME": "~/b"},
        {"TORCH_HOME": "~/c", "XDG_CACHE_HOME": "/d"},
    ):
        with monkeypatch.context() as patch:
            for name in ("TORCH_HOME", "XDG_CACHE_HOME"):
                patch.delenv(name, raising=False)
            for name, value in settings.items():
                patch.setenv(name, value)
            assert rt.hub.get_dir() == torch.hub.get_dir()
    monkeypatch.setenv("TORCH_HUB", "/x")
    for T in (torch, rt):
        monkeypatch.setattr(T.hub, "_hub_dir", None)
        T.hub.set_dir("~/somewhere")
        with pytest.warns(UserWarning, match="TORCH_HUB is deprecated, please use env TORCH_HOME instead"):
            assert T.hub.get_dir() == os.path.expanduser("~/somewhere")


# ------------------------------------------------------------------------------------------------------ weights


@pytest.fixture
def weights(tmp_path):
    """The URL of a file whose name has the first digits of its hash, and of one whose name has others."""
    plain = tmp_path / "weights.pth"
    torch.save({"w": torch.arange(3.0)}, plain)
    digits = hashlib.sha256(plain.read_bytes()).hexdigest()[:8]
    for digits in (digits, "0" * 8):
        (tmp_path / f"net-{digits}.pth").write_bytes(plain.read_bytes())
    return {"right": next(tmp_path.glob("net-[!0]*")).as_uri(), "wrong": (tmp_path / "net-00000000.pth").as_uri()}


@pytest.mark.parametrize("progress", [True, False])
@pytest.mark.parametrize("check_hash", [True, False])
@pytest.mark.parametrize("which", ["right", "wrong"])
def test_weights_from_a_url(weights, which, check_hash, progress, tmp_path, monkeypatch, capsys):
    found = []
    for T in (torch, rt):
        monkeypatch.setattr(T.hub, "_hub_dir", str(tmp_path / T.__name__))
        monkeypatch.setattr(torch.hub, "tqdm", torch.hub._Faketqdm)
        load = lambda: T.hub.load_state_dict_from_url(weights[which], check_hash=check_hash, progress=progress)
        first = outcome(lambda: load()["w"].tolist())
        said = [text.replace(str(tmp_path / T.__name__), "FOLDER") for text in capsys.readouterr()]
        files = sorted(str(path.relative_to(tmp_path / T.__name__)) for path in (tmp_path / T.__name__).rglob("*"))
        again = outcome(lambda: load()["w"].tolist())  # from the copy, if there is one
        capsys.readouterr()
        found.append((first, said[0], files, again))
    assert found[0] == found[1]
    assert (str(found[0][0]).startswith("RuntimeError: invalid hash value")) is (check_hash and which == "wrong")


def test_a_name_and_a_folder_of_ones_own(in_library, weights, tmp_path):
    load = in_library.hub.load_state_dict_from_url
    state = load(
        weights["right"],
        str(tmp_path / "mine"),
        file_name="a.pth",
        progress=False,
        map_location="cpu",
        weights_only=True,
    )
    assert state["w"].tolist() == [0, 1, 2] and os.listdir(tmp_path / "mine") == ["a.pth"]
    assert "FileNotFoundError" in outcome(lambda: load((tmp_path / "no.pth").as_uri())) or "URLError" in outcome(
        lambda: load((tmp_path / "no.pth").as_uri())
    )
    assert os.listdir(tmp_path / "hub" / "checkpoints") == []


@pytest.mark.parametrize("name", ["old.pth", "../old.pth", "/old.pth"])
def test_zipped_by_hand(name, tmp_path, monkeypatch):
    found = []
    torch.save({"w": torch.ones(2)}, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(tmp_path / "net.zip", "w") as archive:
        archive.writestr(name, (tmp_path / "old.pth").read_bytes())
    for T in (torch, rt):
        monkeypatch.setattr(T.hub, "_hub_dir", str(tmp_path / T.__name__))
        with pytest.warns(FutureWarning, match="Falling back to the old format < 1.6"):
            found.append(
                outcome(
                    lambda: T.hub.load_state_dict_from_url((tmp_path / "net.zip").as_uri(), progress=False)[
                        "w"
                    ].tolist()
                )
            )
    assert found[0] == found[1]


def test_names():
    assert rt.hub.__all__ == torch.hub.__all__
