"""Uploads: only sound files are kept, and only their owner gets them."""

import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from explorer.errors import SourceError
from explorer.home import find_home_folder
from explorer.uploads import Uploads

GGUF = b"GGUF" + bytes(60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "from").mkdir()
    return tmp_path / "from"


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    return Uploads(tmp_path / "home")


def model_files(folder: Path, weights: str = "model.safetensors") -> list[Path]:
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "tokenizer.json").write_text("{}")
    save_file({"w": np.arange(6, dtype=np.float32)}, folder / weights)
    return [folder / "config.json", folder / "tokenizer.json", folder / weights]


def gguf_file(folder: Path, name: str = "mine.gguf") -> Path:
    (folder / name).write_bytes(GGUF)
    return folder / name


def kept_files(home: Path) -> list[Path]:
    return [path for path in (home / "uploads").rglob("*") if path.is_file()]


def test_a_gguf_file_is_kept_as_it_is(uploads, folder):
    source = uploads.keep([gguf_file(folder)], "ann")
    found = uploads.find(source, "ann")
    assert source.startswith("upload:")
    assert found.name == "mine.gguf"
    assert found.read_bytes() == GGUF


def test_a_model_folder_is_kept_as_it_is(uploads, folder):
    found = uploads.find(uploads.keep(model_files(folder), "ann"), "ann")
    names = sorted(path.name for path in found.iterdir())
    assert names == ["config.json", "model.safetensors", "tokenizer.json"]
    assert load_file(found / "model.safetensors")["w"].tolist() == list(range(6))


def test_single_weights_get_the_name_that_loaders_look_for(uploads, folder):
    found = uploads.find(uploads.keep(model_files(folder, "my weights (1).safetensors"), "a"), "a")
    assert (found / "model.safetensors").is_file()


def test_shards_keep_their_names(uploads, folder):
    files = model_files(folder, "model-00001-of-00002.safetensors")
    save_file({"v": np.zeros(3, np.float32)}, folder / "model-00002-of-00002.safetensors")
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {}}')
    files += [folder / "model-00002-of-00002.safetensors", folder / "model.safetensors.index.json"]
    found = uploads.find(uploads.keep(files, "ann"), "ann")
    assert {path.name for path in found.iterdir()} == {file.name for file in files}


def test_only_the_owner_finds_an_upload(uploads, folder):
    source = uploads.keep([gguf_file(folder)], "ann")
    for stranger in ("bob", "", "Ann", "../ann"):
        with pytest.raises(SourceError, match="belongs to another browser"):
            uploads.find(source, stranger)
    with pytest.raises(SourceError, match="belongs to another browser"):
        uploads.delete(source, "bob")
    assert uploads.find(source, "ann").is_file()


@pytest.mark.parametrize("token", ["", ".", "..", "../x", "/etc", "a" * 21, "a" * 22, "a/" * 11])
def test_made_up_sources_find_nothing(uploads, folder, token):
    uploads.keep([gguf_file(folder)], "ann")
    with pytest.raises(SourceError, match="upload the files again"):
        uploads.find(f"upload:{token}", "ann")


@pytest.mark.parametrize("owner", ["../../etc", "a/b", "\x00", "\ud800", "x" * 5000])
def test_any_owner_id_is_a_safe_folder(uploads, folder, tmp_path, owner):
    found = uploads.find(uploads.keep([gguf_file(folder)], owner), owner)
    assert found.parents[2] == tmp_path / "home" / "uploads"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("a b/../c.gguf", "c.gguf"),
        ("über modell.GGUF", "ber-modell.gguf"),
        ("模型.gguf", "model.gguf"),
        ("...gguf", "model.gguf"),
        ("-rf $(x).gguf", "rf-x.gguf"),
        ("n" * 200 + ".gguf", "n" * 100 + ".gguf"),
    ],
)
def test_names_become_safe(uploads, folder, name, kept):
    (folder / "a b").mkdir()
    path = folder / name
    path.write_bytes(GGUF)
    assert uploads.find(uploads.keep([path], "ann"), "ann").name == kept


def test_deleting_removes_the_files(uploads, folder, tmp_path):
    one = uploads.keep([gguf_file(folder)], "ann")
    other = uploads.keep(model_files(folder), "ann")
    uploads.delete(one, "ann")
    assert len(kept_files(tmp_path / "home")) == 3
    uploads.delete(other, "ann")
    assert kept_files(tmp_path / "home") == []
    with pytest.raises(SourceError):
        uploads.find(one, "ann")


def test_no_files_or_half_a_model_are_refused(uploads, folder):
    config, tokenizer, weights = model_files(folder)
    for files in ([], [config], [weights], [config, tokenizer], [tokenizer, weights]):
        with pytest.raises(SourceError, match="upload one .gguf file, one .pth file, or"):
            uploads.keep(files, "ann")


@pytest.mark.parametrize("name", ["model.h5", "pytorch_model.bin", "modeling.py", "weights"])
def test_other_files_are_refused_by_name(uploads, folder, name):
    (folder / name).write_bytes(b"x")
    with pytest.raises(SourceError, match="not a model file") as caught:
        uploads.keep([*model_files(folder), folder / name], "ann")
    assert caught.value.facts["name"] == name


def pth_file(folder: Path, name: str = "my gpt.pth") -> Path:
    """An archive with the table of contents that `torch.save` makes."""
    with zipfile.ZipFile(folder / name, "w") as archive:
        archive.writestr("gpt/data.pkl", b"\x80\x02}.")
        archive.writestr("gpt/data/0", bytes(24))
    return folder / name


def test_a_state_dict_is_kept_with_what_belongs_to_it(uploads, folder):
    files = [pth_file(folder), folder / "settings.json", folder / "tokenizer.json"]
    for file in files[1:]:
        file.write_text('{"n_heads": 3}')
    found = uploads.find(uploads.keep(files, "ann"), "ann")
    names = sorted(path.name for path in found.iterdir())
    assert names == ["my-gpt.json", "my-gpt.pth", "tokenizer.json"]


def test_metas_files_keep_their_names(uploads, folder):
    (folder / "params.json").write_text("{}")
    files = [pth_file(folder, "consolidated.00.pth"), folder / "params.json"]
    found = uploads.find(uploads.keep(files, "ann"), "ann")
    assert {path.name for path in found.iterdir()} == {"consolidated.00.pth", "params.json"}


def test_a_state_dict_that_is_no_archive_is_refused(uploads, folder, tmp_path):
    path = pth_file(folder)
    for content in (b"", b"x", b"PK\x03\x04" + bytes(60), path.read_bytes()[:-9]):
        path.write_bytes(content)
        with pytest.raises(SourceError, match="'my gpt.pth' is damaged"):
            uploads.keep([path], "ann")
    path.write_bytes(pickle.dumps({"w": 1}))
    with pytest.raises(SourceError, match="save its state dict again"):
        uploads.keep([path], "ann")
    assert kept_files(tmp_path / "home") == []


def test_two_state_dicts_or_one_beside_a_folder_are_refused(uploads, folder):
    one, other = pth_file(folder, "a.pth"), pth_file(folder, "b.pt")
    with pytest.raises(SourceError, match="not a model file"):
        uploads.keep([one, other], "ann")
    with pytest.raises(SourceError, match="'config.json' is not a model file"):
        uploads.keep([one, *model_files(folder)], "ann")
    (folder / "c.json").write_text("{}")
    (folder / "d.json").write_text("{}")
    with pytest.raises(SourceError, match="one model at a time"):
        uploads.keep([one, folder / "c.json", folder / "d.json"], "ann")


def test_a_gguf_file_does_not_go_with_others(uploads, folder):
    with pytest.raises(SourceError, match=r"mine\.gguf"):
        uploads.keep([gguf_file(folder), *model_files(folder)], "ann")


def test_two_files_of_one_name_are_refused(uploads, folder):
    files = model_files(folder)
    with pytest.raises(SourceError, match="one model at a time"):
        uploads.keep([*files, files[0]], "ann")


def _header(value: object, data: bytes = b"") -> bytes:
    text = json.dumps(value).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"short",
        b"<html>not found</html>",
        (2**63).to_bytes(8, "little") + b"{}",
        _header([1, 2]),
        _header({"w": 7}),
        _header({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, bytes(7)),
        _header({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, bytes(9)),
        _header({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, "8"]}}, bytes(8)),
        (200_000).to_bytes(8, "little") + b"[" * 200_000,
    ],
)
def test_damaged_weights_are_refused(uploads, folder, tmp_path, content):
    files = model_files(folder)
    files[2].write_bytes(content)
    with pytest.raises(SourceError, match="download or export it again"):
        uploads.keep(files, "ann")
    assert kept_files(tmp_path / "home") == []


def test_sound_weights_pass(uploads, folder):
    files = model_files(folder)
    tensors = {"w": np.zeros((3, 5), np.float16), "b": np.zeros(0, np.float32)}
    save_file(tensors, files[2], metadata={"format": "pt"})
    uploads.find(uploads.keep(files, "ann"), "ann")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 200_000])
def test_a_config_that_is_no_json_object_is_refused(uploads, folder, content):
    files = model_files(folder)
    files[0].write_bytes(content)
    with pytest.raises(SourceError, match="'config.json' is damaged"):
        uploads.keep(files, "ann")


def test_a_gguf_file_needs_its_magic(uploads, folder):
    path = gguf_file(folder)
    path.write_bytes(b"PK\x03\x04" + bytes(60))
    with pytest.raises(SourceError, match="'mine.gguf' is damaged"):
        uploads.keep([path], "ann")


def test_the_limit_counts_all_files_together(folder, tmp_path):
    files = model_files(folder)
    size = sum(file.stat().st_size for file in files)
    Uploads(tmp_path / "home", max_bytes=size).keep(files, "ann")
    with pytest.raises(SourceError, match="choose a smaller") as caught:
        Uploads(tmp_path / "home", max_bytes=size - 1).keep(files, "ann")
    assert caught.value.code == "upload-too-large"


def test_a_full_disk_is_said_before_anything_is_written(folder, tmp_path, monkeypatch):
    class Usage:
        free = 500 * 10**6

    monkeypatch.setattr("explorer.uploads.shutil.disk_usage", lambda _folder: Usage)
    with pytest.raises(SourceError, match="larger disk"):
        Uploads(tmp_path / "home").keep([gguf_file(folder)], "ann")
    assert not (tmp_path / "home").exists()


def test_a_write_that_fails_leaves_nothing(folder, tmp_path, monkeypatch):
    def fail(_from: Path, to: Path) -> None:
        to.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("explorer.uploads.shutil.copyfile", fail)
    with pytest.raises(SourceError, match="No space left"):
        Uploads(tmp_path / "home").keep([gguf_file(folder)], "ann")
    assert kept_files(tmp_path / "home") == []


def test_home_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    assert find_home_folder({"GLASSBOX_HOME": "/data/glass"}, "linux") == Path("/data/glass")
    assert find_home_folder({"GLASSBOX_HOME": "~/g"}, "linux") == Path("/home/ann/g")
    assert find_home_folder({}, "linux") == Path("/home/ann/.cache/glassbox")
    assert find_home_folder({"XDG_CACHE_HOME": "/c"}, "linux") == Path("/c/glassbox")
    assert find_home_folder({"XDG_CACHE_HOME": "c"}, "linux") == Path("/home/ann/.cache/glassbox")
    assert find_home_folder({}, "darwin") == Path("/home/ann/Library/Caches/glassbox")
    assert find_home_folder({"LOCALAPPDATA": "/l"}, "win32") == Path("/l/glassbox")
