"""PyTorch's own files: what is found in them, and what is refused and never run."""

import os
import pickle
import zipfile
from pathlib import Path

import pytest
import torch

from models import load_model
from models.errors import ConfigError, SourceError, WeightError
from models.sources import find_local, resolve_source


@pytest.fixture
def whole(tmp_path):
    path = tmp_path / "whole.pth"
    torch.save({"a": torch.ones(300), "b": torch.ones(40, 40)}, path)
    return path


class Malicious:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return os.system, (f"touch {self.target}",)


def test_code_in_a_pickle_is_refused_and_never_run(tmp_path):
    proof, path = tmp_path / "proof", tmp_path / "evil.pth"
    torch.save({"tok_emb.weight": torch.ones(2, 2), "x": Malicious(proof)}, path)
    with pytest.raises(WeightError, match=r"asks to run code \(\w+\.system\)") as caught:
        load_model(path)
    assert caught.value.code == "pickle-has-code"
    path.write_bytes(pickle.dumps(Malicious(proof)))
    with pytest.raises(WeightError, match="bare pickle"):
        load_model(path)
    assert not proof.exists()
    torch.save({"x": Malicious(proof)}, path)
    torch.load(path, weights_only=False)
    assert proof.exists()  # the same pickle does run where it is allowed to


def test_a_whole_model_instead_of_its_state_dict_is_refused_with_the_way(tmp_path):
    torch.save(torch.nn.Linear(2, 3), tmp_path / "whole.pth")
    with pytest.raises(WeightError, match=r"Linear.*torch\.save\(model\.state_dict\(\)"):
        load_model(tmp_path / "whole.pth")


@pytest.mark.parametrize("content", [[torch.ones(2)], {}, {1: torch.ones(2)}, {"a": 7}])
def test_a_file_without_a_state_dict_is_refused(tmp_path, content):
    torch.save(content, tmp_path / "other.pth")
    with pytest.raises(WeightError, match=r"expected a state dict.*model\.state_dict"):
        load_model(tmp_path / "other.pth")


def test_the_old_format_is_refused_with_the_way(tmp_path):
    state = {"a": torch.ones(2)}
    torch.save(state, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    with pytest.raises(WeightError, match="save it anew"):
        load_model(tmp_path / "old.pth")


DAMAGES = {
    "empty": lambda whole: b"",
    "garbage": lambda whole: bytes(range(256)) * 40,
    "half": lambda whole: whole[: len(whole) // 2],
    "end missing": lambda whole: whole[:-30],
    "hole": lambda whole: whole[:900] + whole[1_500:],
    "a zip of nothing": lambda whole: b"PK\x05\x06" + bytes(18),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_files_are_refused(whole, tmp_path, damage):
    (tmp_path / "bad.pth").write_bytes(damage(whole.read_bytes()))
    with pytest.raises(WeightError, match="download or save it again"):
        load_model(tmp_path / "bad.pth")


def rewrite(source: Path, target: Path, change, compressed: str = "none") -> None:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            kind = zipfile.ZIP_DEFLATED if entry.filename.endswith(compressed) else None
            new.writestr(entry.filename, change(entry.filename, old.read(entry)), kind)


LIES = {
    "short tensor": lambda name, data: data[:40] if name.endswith("data/1") else data,
    "broken pickle": lambda name, data: data[:50] if name.endswith(".pkl") else data,
    "noise for a pickle": lambda name, data: b"\x80\x02(((((." if "pkl" in name else data,
}


@pytest.mark.parametrize("change", LIES.values(), ids=LIES)
def test_archives_that_do_not_hold_what_they_promise_are_refused(whole, tmp_path, change):
    rewrite(whole, tmp_path / "bad.pth", change)
    with pytest.raises(WeightError, match="download or save it again"):
        load_model(tmp_path / "bad.pth")


def test_a_compressed_tensor_is_refused_for_other_bytes_would_be_mapped(whole, tmp_path):
    rewrite(whole, tmp_path / "bad.pth", lambda _, data: data, compressed="data/0")
    with pytest.raises(WeightError, match="download or save it again"):
        load_model(tmp_path / "bad.pth")


def test_a_tensor_larger_than_its_file_is_refused(tmp_path):
    torch.save({"a": torch.ones(1).expand(10**6, 10**6)}, tmp_path / "wide.pth")
    with pytest.raises(WeightError, match="tensor a is not stored as plain numbers"):
        load_model(tmp_path / "wide.pth")
    torch.save({"s": torch.eye(3).to_sparse()}, tmp_path / "sparse.pth")
    with pytest.raises(WeightError, match="tensor s is not stored as plain numbers"):
        load_model(tmp_path / "sparse.pth")


def test_a_state_dict_of_another_family_is_refused_with_the_known_ones(tmp_path):
    torch.save({"transformer.wte.weight": torch.ones(3, 2)}, tmp_path / "nano.pth")
    with pytest.raises(ConfigError, match=r"transformer\.wte\.weight; known.*Llama, Book GPT"):
        load_model(tmp_path / "nano.pth")


def test_paths_and_folders_that_hold_a_state_dict(tmp_path):
    one = tmp_path / "one"
    one.mkdir()
    (one / "gpt.pth").write_bytes(b"x")
    assert find_local(str(one)).path == one / "gpt.pth"
    (one / "gpt2.pt").write_bytes(b"x")
    with pytest.raises(SourceError, match=r"holds 2 files.*gpt\.pth, gpt2\.pt"):
        resolve_source(str(one))
    (one / "config.json").write_text("{}")
    assert resolve_source(str(one)).kind == "folder"
    (one / "pytorch_model.bin").write_bytes(b"x")
    assert resolve_source(str(one / "pytorch_model.bin")).path == one
    (one / "config.json").unlink()
    assert resolve_source(str(one / "pytorch_model.bin")).kind == "pth"


@pytest.mark.parametrize("place", ["", "model.ckpt.index"])
def test_openais_tensorflow_files_are_refused_with_the_hub_copy(tmp_path, place):
    for name in ("model.ckpt.index", "model.ckpt.meta", "hparams.json", "encoder.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(SourceError, match="TensorFlow.*openai-community/gpt2"):
        resolve_source(str(tmp_path / place))
