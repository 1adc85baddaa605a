"""Steps of quantised blocks against their codes counted up one by one, and real rounding errors."""

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize, quantize

from models.gguf_file import GgufFile
from models.gguf_steps import compute_float_steps, compute_steps, measure_stored

ROWS, COLUMNS = 3, 512
# kind -> byte of a block that holds a lowest code bit, and what counting it up by one does
CODE_BYTES = {
    "Q4_0": (2, 1),
    "Q4_1": (4, 1),
    "Q5_0": (6, 1),
    "Q5_1": (8, 1),
    "Q8_0": (2, 1),
    "Q2_K": (16, 1),
    "Q3_K": (32, 1),
    "Q4_K": (16, 1),
    "Q5_K": (48, 1),
    "Q6_K": (0, 1),
}


def draw(seed):
    generator = np.random.default_rng(seed)
    return generator.standard_normal((ROWS, COLUMNS)).astype(np.float32)


def draw_blocks(kind, seed):
    """Random codes and scales under halves that are good numbers."""
    type_ = gguf.GGMLQuantizationType[kind]
    size, n_bytes = gguf.GGML_QUANT_SIZES[type_]
    generator = np.random.default_rng(seed)
    blocks = generator.integers(0, 255, (ROWS * COLUMNS // size, n_bytes), dtype=np.uint8)
    half = np.frombuffer(np.float16(0.0123).tobytes(), np.uint8)
    places = {"Q2_K": (80, 82), "Q3_K": (108,), "Q6_K": (208,)}.get(kind, (0, 2))
    if kind in ("Q4_0", "Q5_0", "Q8_0"):
        places = (0,)
    for place in places:
        blocks[:, place : place + 2] = half
    return blocks.reshape(ROWS, -1), type_, n_bytes


def test_a_step_is_what_counting_a_code_up_by_one_changes():
    for kind, (place, by) in CODE_BYTES.items():
        rows, type_, n_bytes = draw_blocks(kind, 5)
        blocks = rows.reshape(-1, n_bytes)
        blocks[:, place] &= 0xF0  # room to count up: the lowest bits are of one number's code
        steps = compute_steps(rows, kind)
        before = dequantize(rows, type_)
        blocks[:, place] += by
        changed = np.abs(dequantize(rows, type_) - before)
        moved = changed > 0
        assert len(blocks) - 1 <= moved.sum() <= len(blocks), kind  # one scale may be 0
        np.testing.assert_allclose(changed[moved], steps[moved], rtol=2e-4, err_msg=kind)


def test_steps_of_floating_point_are_the_distances_to_the_next_number():
    halves = draw(7).astype(np.float16)
    found = compute_float_steps(halves.astype(np.float32), 10)
    np.testing.assert_array_equal(found, np.abs(np.spacing(halves)).astype(np.float64))


def test_the_expected_error_is_that_of_real_rounding(tmp_path):
    values = draw(11)
    kinds = ("Q4_1", "Q5_1", "Q8_0", "BF16", "F16")
    writer = gguf.GGUFWriter(tmp_path / "numbers.gguf", "llama")
    for kind in kinds:
        type_ = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(f"w.{kind}", quantize(values, type_), raw_dtype=type_)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with GgufFile(tmp_path / "numbers.gguf") as file:
        for kind in kinds:
            found = measure_stored(file, f"w.{kind}")
            real = np.linalg.norm(file.read(f"w.{kind}") - values) / np.linalg.norm(values)
            assert found.kind == kind
            assert found.error == pytest.approx(float(real), rel=0.1)
