"""Our GGUF reader against the `gguf` package's, and against damaged files."""

import struct

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind
from gguf.quants import quantize
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import SourceError, WeightError
from models.gguf_file import GgufFile

QUANTISED = (Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.Q8_0, Kind.BF16)


def write_sample(path):
    """A file with every kind of value and several kinds of tensors; returns the plain tensors."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint8("n.u8", 200)
    writer.add_int8("n.i8", -7)
    writer.add_uint16("n.u16", 60000)
    writer.add_int16("n.i16", -300)
    writer.add_uint32("n.u32", 2**31 + 1)
    writer.add_int32("n.i32", -5)
    writer.add_float32("n.f32", 0.5)
    writer.add_uint64("n.u64", 2**63 + 3)
    writer.add_int64("n.i64", -(2**40))
    writer.add_float64("n.f64", 0.1)
    writer.add_bool("n.bool", True)
    writer.add_string("s", "Ġthe 你好 \0 end")
    writer.add_array("words", ["a", "", "你好", "Ġt"])
    writer.add_array("ints", [1, -2, 3])
    writer.add_array("floats", [0.25, -1.5])
    random = np.random.default_rng(1)
    plain = {}
    for kind in QUANTISED:
        plain[kind.name] = values = random.standard_normal((7, 96), dtype=np.float32)
        writer.add_tensor(f"{kind.name}.weight", quantize(values, kind), raw_dtype=kind)
    plain["F32"] = random.standard_normal((3, 5, 2), dtype=np.float32)
    writer.add_tensor("F32.weight", plain["F32"])
    plain["F16"] = random.standard_normal((13,)).astype(np.float16)
    writer.add_tensor("F16.weight", plain["F16"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return plain


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "sample.gguf"
    return path, write_sample(path)


def assert_same_as_package(path):
    theirs = gguf.GGUFReader(path)
    with GgufFile(path) as ours:
        fields = {k: v.contents() for k, v in theirs.fields.items() if not k.startswith("GGUF.")}
        assert dict(ours.metadata) == fields
        assert list(ours.tensors) == [tensor.name for tensor in theirs.tensors]
        for tensor in theirs.tensors:
            entry = ours.tensors[tensor.name]
            assert entry.shape == tuple(reversed(tensor.shape.tolist()))
            assert entry.kind == tensor.tensor_type
            assert (entry.offset, entry.n_bytes) == (tensor.data_offset, tensor.n_bytes)
            expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            np.testing.assert_array_equal(ours.read(tensor.name), expected)


def test_equals_the_package_on_every_kind(sample):
    assert_same_as_package(sample[0])


def test_read_gives_back_what_was_written(sample):
    path, plain = sample
    with GgufFile(path) as file:
        for name, values in plain.items():
            read = file.read(f"{name}.weight")
            assert read.dtype == np.float32
            assert read.flags.writeable
            coarse = {"F32": 0, "F16": 0, "Q4_0": 0.5, "Q4_1": 0.5}.get(name, 0.15)
            np.testing.assert_allclose(read, values, atol=coarse)


def test_architecture(sample):
    with GgufFile(sample[0]) as file:
        assert file.architecture == "llama"


def test_arrays_read_before_closing_stay_valid(sample):
    path, plain = sample
    file = GgufFile(path)
    read = file.read("F32.weight")
    file.close()
    np.testing.assert_array_equal(read, plain["F32"])


@pytest.mark.slow
def test_equals_the_package_on_smollm2(smollm2_file):
    assert_same_as_package(smollm2_file)


def test_smollm2_metadata(smollm2_file):
    with GgufFile(smollm2_file) as file:
        assert file.architecture == "llama"
        assert len(file.metadata["tokenizer.ggml.tokens"]) == 49152
        assert len(file.metadata["tokenizer.ggml.merges"]) == 48900
        assert file.tensors["token_embd.weight"].shape == (49152, 576)
        assert file.tensors["blk.0.ffn_down.weight"].shape == (576, 1536)


def test_every_truncation_is_refused(sample, tmp_path):
    whole = sample[0].read_bytes()
    short = tmp_path / "short.gguf"
    with GgufFile(sample[0]) as file:
        last = max(t.offset + t.n_bytes for t in file.tensors.values())
    head = min(1800, last)  # every byte of the beginning, where a cut may fall into any field
    cuts = [*range(0, 240), *range(240, head, 7), *range(head, last, 389), last - 1]
    for length in cuts:
        short.write_bytes(whole[:length])
        with pytest.raises(WeightError, match="Download or convert it again"):
            GgufFile(short)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_flipped_bytes_never_do_harm(sample, tmp_path_factory, data):
    """A changed byte gives a WeightError or a readable file, nothing else."""
    whole = bytearray(sample[0].read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, 1800))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "flipped.gguf"
    path.write_bytes(whole)
    try:
        file = GgufFile(path)
    except WeightError:
        return
    with file:
        for tensor in file.tensors.values():
            assert tensor.offset + tensor.n_bytes <= len(whole)


def header(version=3, n_tensors=0, n_keys=0):
    return b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_keys)


def text(value):
    return struct.pack("<Q", len(value)) + value


def tensor_row(*, axes=(32, 2), kind=0, offset=0):
    row = text(b"w") + struct.pack("<I", len(axes)) + struct.pack(f"<{len(axes)}Q", *axes)
    return header(n_tensors=1) + row + struct.pack("<IQ", kind, offset) + bytes(512)


BAD = {
    "no GGUF": (b"PK\x03\x04" + bytes(100), "instead of b'GGUF'"),
    "version 1": (header(version=1), "version 1, known are"),
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
    "absurd keys": (header(n_keys=2**60), "metadata keys cannot fit"),
    "absurd tensors": (header(n_tensors=2**63), "tensors cannot fit"),
    "absurd string": (header(n_keys=1) + struct.pack("<Q", 2**63) + bytes(50), "too far"),
    "not UTF-8": (header(n_keys=1) + text(b"\xff\xfe") + bytes(50), "not UTF-8"),
    "unknown value": (
        header(n_keys=1) + text(b"k") + struct.pack("<I", 99) + bytes(50),
        "unknown kind 99",
    ),
    "absurd array": (
        header(n_keys=1) + text(b"k") + struct.pack("<IIQ", 9, 4, 2**61),
        "claims 2,305,843,009,213,693,952 elements",
    ),
    "long array": (
        header(n_keys=1) + text(b"k") + struct.pack("<IIQ", 9, 4, 2**20),
        r"needs 4,194,304 bytes",
    ),
    "nested arrays": (
        header(n_keys=1) + text(b"k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 50,
        "too deeply",
    ),
    "same key twice": (
        header(n_keys=2) + (text(b"k") + struct.pack("<II", 4, 1)) * 2,
        "'k' occurs twice",
    ),
    "alignment": (
        header(n_keys=1) + text(b"general.alignment") + struct.pack("<II", 4, 7),
        "not a power of two",
    ),
    "too many axes": (tensor_row(axes=(1,) * 9), "9 axes"),
    "beyond the end": (tensor_row(offset=2**50), "the file ends at"),
    "huge tensor": (tensor_row(axes=(2**60, 2**60)), "the file ends at"),
    "half a block": (tensor_row(axes=(33, 2), kind=8), "no whole number of blocks of 32"),
    "empty tensor": (tensor_row(axes=(0, 2)), "no whole number"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused(tmp_path, name):
    content, problem = BAD[name]
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(WeightError, match=problem) as caught:
        GgufFile(path)
    assert "Download or convert it again" in caught.value.message
    assert caught.value.code == "gguf-damaged"


def test_unknown_quantisation_names_the_remedy(tmp_path):
    path = tmp_path / "new.gguf"
    path.write_bytes(tensor_row(kind=250))
    with pytest.raises(WeightError, match="kind 250.*Take a Q8_0"):
        GgufFile(path)


def test_kind_without_dequantiser_is_refused_when_read(tmp_path):
    path = tmp_path / "q8_1.gguf"
    path.write_bytes(tensor_row(kind=Kind.Q8_1.value))
    with GgufFile(path) as file, pytest.raises(WeightError, match=r"Q8_1.*Take a Q8_0"):
        file.read("w")


def test_part_of_a_split_model_is_refused(tmp_path):
    path = tmp_path / "part.gguf"
    path.write_bytes(header(n_keys=1) + text(b"split.count") + struct.pack("<IH", 2, 3) + bytes(50))
    with pytest.raises(WeightError, match="one of 3 parts.*--merge"):
        GgufFile(path)


def test_missing_file_and_tensor(tmp_path, sample):
    with pytest.raises(SourceError, match="Check the path"):
        GgufFile(tmp_path / "none.gguf")
    with GgufFile(sample[0]) as file, pytest.raises(WeightError, match="choose one of"):
        file.read("nothing")
