"""What a file that `torch.save` wrote looks like from outside, told without torch.

    name.pth = zip archive, nothing compressed
        name/data.pkl     a pickle: names, shapes, and which bytes belong to which tensor
        name/data/0 ...   the bytes of the tensors
        name/version, name/byteorder ...

Until PyTorch 1.6 (2020) the file was a bare pickle. Nothing here reads a pickle, so nothing in a
file can run.
"""

import zipfile
from pathlib import Path
from typing import Literal

ArchiveFault = Literal["old", "damaged"]
# Names and shapes only; a model of 1,000 tensors needs some 100 KB.
_LONGEST_PICKLE_BYTES = 100 * 10**6
# Pickles of protocol 2 (which torch.save writes) to 5 begin so.
_PICKLE_STARTS = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))


def find_archive_fault(path: Path) -> ArchiveFault | None:
    """Look at the table of contents of a file.

    Args:
        path: A file that should come from `torch.save`.

    Returns:
        `old` for a bare pickle, `damaged` for what is no such archive or not whole, None when it
        may be read.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as stream:
        start = stream.read(2)
    if start in _PICKLE_STARTS:
        return "old"
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        return "damaged"
    pickles = [entry for entry in entries if entry.filename.endswith("/data.pkl")]
    if len(pickles) != 1 or pickles[0].file_size > _LONGEST_PICKLE_BYTES:
        return "damaged"
    # bytes are mapped where they lie: what is compressed has other bytes there
    stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
    return None if stored else "damaged"
