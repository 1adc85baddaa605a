"""Metrics as other programs read them."""

import csv
import io
import math
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from explorer.errors import JobError
from explorer.training.events import Evaluated, Event, Finished, Sampled, Saved, Step
from explorer.training.export import metrics_csv, send_to_trackio, write_tensorboard


def make_step(step: int, loss: float) -> Step:
    return Step(
        step=step,
        at=1_700_000_000.5 + step,
        epoch=step / 8,
        tokens=512 * step,
        loss=loss,
        learning_rate=1e-3 / step,
        gradient_norm=0.1 + 0.2,
        duration_s=0.25,
    )


def make_evaluated(step: int, training: float, validation: float) -> Evaluated:
    return Evaluated(
        step=step,
        at=1_700_000_000.75 + step,
        tokens=512 * step,
        training_loss=training,
        validation_loss=validation,
        duration_s=2.0,
    )


EVENTS: tuple[Event, ...] = (
    make_evaluated(0, 5.5, 5.75),
    make_step(1, 5.25),
    make_step(2, math.nan),
    make_evaluated(2, 4.5, 5.0),
    Sampled(step=2, at=0.0, prompt="a,b", text='"quoted"\n'),
    Saved(step=2, at=0.0, folder="step-2", n_bytes=7, duration_s=0.1),
    make_step(3, 4.125),
    Finished(step=3, at=0.0, reason="done"),
)


def test_csv_has_a_row_per_step_and_empty_cells_where_nothing_is_known() -> None:
    text = metrics_csv(EVENTS)
    assert text.count("\r\n") == text.count("\n") == 5
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["step"] for row in rows] == ["0", "1", "2", "3"]
    assert [row["loss"] for row in rows] == ["", "5.25", "", "4.125"]
    assert [row["validation_loss"] for row in rows] == ["5.75", "", "5.0", ""]
    assert [row["training_loss"] for row in rows] == ["5.5", "", "4.5", ""]
    assert [row["tokens"] for row in rows] == ["0", "512", "1024", "1536"]
    assert rows[0]["learning_rate"] == ""
    assert float(rows[1]["gradient_norm"]) == 0.1 + 0.2  # every digit is there
    assert rows[1]["at"] == "1700000001.5"


def test_a_step_taken_again_replaces_the_first() -> None:
    rows = list(csv.DictReader(io.StringIO(metrics_csv([make_step(1, 3.0), make_step(1, 2.5)]))))
    assert [row["loss"] for row in rows] == ["2.5"]


def test_a_run_without_steps_is_a_header_alone() -> None:
    assert metrics_csv([]).splitlines() == [
        "step,at,epoch,tokens,loss,learning_rate,gradient_norm,duration_s,"
        "training_loss,validation_loss"
    ]


def crc32c(data: bytes) -> int:
    """Castagnoli's checksum, bit by bit (RFC 3720, appendix B.4)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read_records(path: Path) -> list[bytes]:
    """The records of a TFRecord file, with both checksums of each checked."""
    data, records, place = path.read_bytes(), [], 0
    while place < len(data):
        head, check = data[place : place + 8], data[place + 8 : place + 12]
        (length,) = struct.unpack("<Q", head)
        assert struct.unpack("<I", check)[0] == masked(head)
        body = data[place + 12 : place + 12 + length]
        (check_of_body,) = struct.unpack("<I", data[place + 12 + length : place + 16 + length])
        assert check_of_body == masked(body)
        records.append(body)
        place += 16 + length
    return records


def test_tensorboard_files_hold_every_number(tmp_path: Path) -> None:
    from tensorboardX.proto.event_pb2 import Event as Record

    assert crc32c(b"123456789") == 0xE3069283  # the check value of the standard
    write_tensorboard(EVENTS, tmp_path / "run")
    (file,) = (tmp_path / "run").iterdir()
    found: dict[str, list[tuple[int, float]]] = {}
    times = {}
    for body in read_records(file):
        record = Record.FromString(body)
        for value in record.summary.value:
            found.setdefault(value.tag, []).append((record.step, value.simple_value))
            times[record.step] = record.wall_time
    assert found["loss"] == [(1, 5.25), (3, 4.125)]
    assert found["validation_loss"] == [(0, 5.75), (2, 5.0)]
    assert found["training_loss"] == [(0, 5.5), (2, 4.5)]
    assert [step for step, _ in found["learning_rate"]] == [1, 2, 3]
    assert times[3] == 1_700_000_003.5


def test_without_trackio_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trackio", None)
    with pytest.raises(JobError, match="pip install trackio"):
        send_to_trackio(EVENTS, project="p", name="n", config={})


def test_trackio_gets_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[object, ...]] = []
    stand_in = SimpleNamespace(
        init=lambda **said: calls.append(("init", said)),
        log=lambda metrics, step: calls.append((step, metrics.get("loss"))),
        finish=lambda: calls.append(("finish",)),
    )
    monkeypatch.setitem(sys.modules, "trackio", stand_in)
    send_to_trackio(EVENTS, project="glassbox", name="first", config={"seed": 5})
    assert calls == [
        ("init", {"project": "glassbox", "name": "first", "config": {"seed": 5}}),
        (0, None),
        (1, 5.25),
        (2, None),
        (3, 4.125),
        ("finish",),
    ]
