"""Reads GGUF, the one-file format of llama.cpp: metadata, vocabulary and quantised tensors.

The whole file is one sequence of little-endian values:

    +------------------------------------------------------------------+
    | "GGUF" | version u32 | number of tensors u64 | number of keys u64 |  header
    +------------------------------------------------------------------+
    | key: string | kind of value: u32 | value                         |  metadata,
    | key: string | kind of value: u32 | value                         |  once per key
    |   ...                                                            |
    +------------------------------------------------------------------+
    | name: string | number of axes u32 | axes u64 ... | kind u32 |    |  tensor table,
    |              | offset u64, counted from the start of the data    |  once per tensor
    |   ...                                                            |
    +---------------- filled with zeros to a multiple of 32 -----------+
    | bytes of tensor 1 .. pad .. bytes of tensor 2 .. pad ..          |  data
    +------------------------------------------------------------------+

    string = length u64, then that many bytes of UTF-8
    array  = kind of its elements u32, length u64, then the elements

A quantised row is a row of blocks. A Q8_0 block, for example, is one 16-bit scale and 32 signed
bytes, and stands for the 32 numbers scale * byte.

Source: *GGUF specification* (ggml, docs/gguf.md), versions 2 and 3. Where we differ from the `gguf`
package: arrays are read as a whole (its reader makes several numpy objects per vocabulary entry),
every length is compared with the file before it is used, and axes are listed in torch's order.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Self

from models.errors import SourceError, WeightError
from models.gguf_cursor import Cursor, damaged_file, read_value

if TYPE_CHECKING:
    import numpy as np
    from gguf import GGMLQuantizationType

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_SMALLEST_KEY = 8 + 4 + 1  # bytes: an empty name, the kind, a value of one byte
_SMALLEST_TENSOR = 8 + 4 + 4 + 8  # bytes: an empty name, no axes, kind, offset
_MOST_AXES = 4  # GGML_MAX_DIMS
_DEFAULT_ALIGNMENT = 32
_BYTES_AT_ONCE = 2**20  # dequantised at once; each byte becomes about 20 on the way
# Kinds that numpy reads itself, all others are dequantised. "<" is little-endian, digits are bytes.
_PLAIN_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "F32": "<f4",
        "F16": "<f2",
        "F64": "<f8",
        "I8": "<i1",
        "I16": "<i2",
        "I32": "<i4",
        "I64": "<i8",
    }
)


@dataclass(frozen=True)
class GgufTensor:
    """One entry of the tensor table.

    Attributes:
        name: Its name in the file, such as `blk.0.attn_q.weight`.
        shape: Axes in torch's order, rows first.
        kind: How the numbers are stored.
        offset: Where its bytes start, counted from the start of the file.
        n_bytes: How many bytes it takes in the file.
    """

    name: str
    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    offset: int
    n_bytes: int


class GgufFile:
    """An open GGUF file: its metadata read, its tensors checked but left on disk.

    Attributes:
        path: The file.
        metadata: Key -> number, string, bool, or list of these.
        tensors: Name -> where and how the tensor is stored, in the file's order.
    """

    def __init__(self, path: Path | str) -> None:
        """Open and check a file.

        Args:
            path: The file. It stays mapped until `close`.

        Raises:
            SourceError: The file does not exist or cannot be opened.
            WeightError: It is no GGUF file that we can read, or it is damaged or cut off.
        """
        self.path = Path(path)
        self._data = _map_file(self.path)
        try:
            cursor = Cursor(self._data, self.path)
            n_tensors, n_keys = _read_header(cursor)
            self.metadata: Mapping[str, object] = MappingProxyType(_read_metadata(cursor, n_keys))
            self._refuse_part()
            entries = [_read_tensor_entry(cursor) for _ in range(n_tensors)]
            start = _align(cursor.position, self._alignment())
            self.tensors: Mapping[str, GgufTensor] = MappingProxyType(self._place(entries, start))
        except BaseException:
            self._data.close()
            raise

    @property
    def architecture(self) -> str:
        """The family as llama.cpp names it, such as `llama`.

        Raises:
            WeightError: The file does not say.
        """
        value = self.metadata.get("general.architecture")
        if not isinstance(value, str):
            raise damaged_file(self.path, "the key general.architecture is missing or not a string")
        return value

    def read(self, name: str) -> np.ndarray:
        """Read one tensor and undo its quantisation.

        Args:
            name: A key of `tensors`.

        Returns:
            A new float32 array of the tensor's shape.

        Raises:
            WeightError: There is no such tensor, or no way to dequantise its kind.
        """
        import numpy as np

        rows, tensor = self.raw(name), self.tensors[name]
        plain = _PLAIN_KINDS.get(tensor.kind.name)
        if plain is not None:
            return rows.view(np.dtype(plain)).astype(np.float32).reshape(tensor.shape)
        try:
            return _dequantize(rows, tensor.kind).reshape(tensor.shape)
        except NotImplementedError as error:
            raise _unknown_kind(self.path, name, tensor.kind.name) from error

    def raw(self, name: str) -> np.ndarray:
        """The bytes of one tensor, (rows, bytes) uint8; a view of the file, valid until `close`.

        Args:
            name: A key of `tensors`.

        Raises:
            WeightError: There is no such tensor.
        """
        import numpy as np

        if name not in self.tensors:
            raise WeightError(
                f"Asked for tensor {name!r} of {self.path.name}, which holds {len(self.tensors)} "
                f"others; choose one of .tensors",
                code="gguf-damaged",
                file=self.path.name,
                problem=f"no tensor {name}",
            )
        tensor = self.tensors[name]
        content = np.frombuffer(self._data, np.uint8, tensor.n_bytes, tensor.offset)
        return content.reshape(math.prod(tensor.shape[:-1]), -1)

    def close(self) -> None:
        """Unmap the file. Arrays that `read` returned stay valid: they are copies."""
        self._data.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _alignment(self) -> int:
        value = self.metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
        if not isinstance(value, int) or value < 1 or value & (value - 1):
            raise damaged_file(self.path, f"general.alignment={value!r} is not a power of two")
        return value

    def _refuse_part(self) -> None:
        parts = self.metadata.get("split.count", 1)
        if isinstance(parts, int) and parts > 1:
            raise WeightError(
                f"{self.path.name} is one of {parts} parts of a split model. Join them with "
                f"`llama-gguf-split --merge` and open the result.",
                code="gguf-split",
                file=self.path.name,
                parts=parts,
            )

    def _place(self, entries: list[GgufTensor], start: int) -> dict[str, GgufTensor]:
        """Turn offsets into positions in the file, and check that each tensor is all there."""
        tensors: dict[str, GgufTensor] = {}
        for entry in entries:
            offset = start + entry.offset
            if entry.name in tensors:
                raise damaged_file(self.path, f"tensor {entry.name!r} is listed twice")
            if offset + entry.n_bytes > len(self._data):
                raise damaged_file(
                    self.path,
                    f"tensor {entry.name!r} would end at byte {offset + entry.n_bytes:,}, the file "
                    f"ends at {len(self._data):,}",
                )
            tensors[entry.name] = GgufTensor(
                entry.name, entry.shape, entry.kind, offset, entry.n_bytes
            )
        return tensors


def _dequantize(rows: np.ndarray, kind: GGMLQuantizationType) -> np.ndarray:
    """All rows as float32, some at a time: the package makes several copies on the way there."""
    import numpy as np
    from gguf.quants import dequantize

    at_once = max(1, _BYTES_AT_ONCE // rows.shape[1])
    numbers: np.ndarray | None = None
    for start in range(0, len(rows), at_once):
        piece = dequantize(rows[start : start + at_once], kind)
        if numbers is None:
            numbers = np.empty((len(rows), piece.shape[1]), np.float32)
        numbers[start : start + at_once] = piece
    assert numbers is not None, "a tensor has at least one row"
    return numbers


def _unknown_kind(path: Path, name: str, kind: object) -> WeightError:
    return WeightError(
        f"Tensor {name!r} of {path.name} is stored as kind {kind}, which cannot be "
        f"dequantised here. Take a Q8_0, Q4_K_M or F16 file of the same model.",
        code="gguf-unknown-kind",
        file=path.name,
        tensor=name,
        kind=kind,
    )


def _map_file(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            if not path.stat().st_size:  # an empty file cannot be mapped
                raise damaged_file(path, "it is empty")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise SourceError(
            f"Cannot open {path}: {error.strerror}. Check the path and that the file may be read.",
            code="file-unreadable",
            file=str(path),
            problem=str(error.strerror),
        ) from error


def _read_header(cursor: Cursor) -> tuple[int, int]:
    """Read magic, version and the two counts: (tensors, keys)."""
    if cursor.data[:4] != _MAGIC:
        raise cursor.damaged(f"it starts with {cursor.data[:4]!r} instead of {_MAGIC!r}")
    cursor.position = 4
    version = cursor.unsigned("I", "the version")
    if not version & 0xFFFF:  # versions are small: an empty lower half means swapped bytes
        raise cursor.damaged("it is big-endian; convert the model for little-endian machines")
    if version not in _VERSIONS:
        raise cursor.damaged(f"it has version {version}, known are {_VERSIONS}")
    n_tensors = cursor.unsigned("Q", "the number of tensors")
    n_keys = cursor.unsigned("Q", "the number of metadata keys")
    for count, smallest, what in (
        (n_keys, _SMALLEST_KEY, "metadata keys"),
        (n_tensors, _SMALLEST_TENSOR, "tensors"),
    ):
        if count * smallest > cursor.left():
            raise cursor.damaged(f"{count:,} {what} cannot fit into {cursor.left():,} bytes")
    return n_tensors, n_keys


def _read_metadata(cursor: Cursor, n_keys: int) -> dict[str, object]:
    metadata: dict[str, object] = {}
    for _ in range(n_keys):
        key = cursor.string("a metadata key")
        if key in metadata:
            raise cursor.damaged(f"the key {key[:80]!r} occurs twice")
        kind = cursor.unsigned("I", f"the kind of {key[:80]!r}")
        metadata[key] = read_value(cursor, kind, f"the value of {key[:80]!r}")
    return metadata


def _read_tensor_entry(cursor: Cursor) -> GgufTensor:
    """Read a row of the tensor table; its offset still counts from the start of the data."""
    from gguf import GGML_QUANT_SIZES

    name = cursor.string("a tensor's name")
    n_axes = cursor.unsigned("I", f"the number of axes of tensor {name[:80]!r}")
    if n_axes > _MOST_AXES:
        raise cursor.damaged(f"tensor {name[:80]!r} has {n_axes:,} axes, at most 4 are possible")
    axes = [int(n) for n in cursor.numbers("Q", n_axes, f"the shape of tensor {name[:80]!r}")]
    kind_number = cursor.unsigned("I", f"the kind of tensor {name[:80]!r}")
    offset = cursor.unsigned("Q", f"the offset of tensor {name[:80]!r}")
    known: dict[int, GGMLQuantizationType] = {kind.value: kind for kind in GGML_QUANT_SIZES}
    if kind_number not in known:
        raise _unknown_kind(cursor.path, name[:80], kind_number)
    block_size, block_bytes = GGML_QUANT_SIZES[known[kind_number]]
    row = axes[0] if axes else 1
    if 0 in axes or row % block_size:
        raise cursor.damaged(
            f"tensor {name[:80]!r} of shape {axes} has no whole number of blocks of {block_size}"
        )
    n_bytes = math.prod(axes) // block_size * block_bytes
    return GgufTensor(name, tuple(reversed(axes)), known[kind_number], offset, n_bytes)


def _align(position: int, alignment: int) -> int:
    return (position + alignment - 1) // alignment * alignment
