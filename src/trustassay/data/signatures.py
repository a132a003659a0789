"""The kind of a file by its first bytes, if it is not UTF-8 text."""

from __future__ import annotations

__all__ = ["GZIP", "LONGEST", "PARQUET", "ZIP", "ZSTD", "other_than_text"]

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
ZIP = b"PK\x03\x04"
PARQUET = b"PAR1"
LONGEST = 16
"""Number of first bytes that are checked."""

PACKED = {
    **{b"BZh%d1AY&SY" % level: ("compressed with bzip2", "bzip2 -d") for level in range(1, 10)},
    b"\xfd7zXZ\x00": ("compressed with xz", "xz -d"),
}
OTHERS = {
    ZIP: "a zip archive, for instance a spreadsheet (.xlsx); name it .xlsx, or unpack it",
    b"\xd0\xcf\x11\xe0": "an old or an encrypted workbook of Excel; save it as .xlsx or CSV",
    b"PAR1\x15": "a Parquet file; name it .parquet",
    b"ARROW1\x00\x00": "an Arrow file; save it as Parquet",
    b"SQLite format 3\x00": "a SQLite database; export its records as JSON Lines or CSV",
    b"%PDF-": "a PDF; expected text",
}
MARKS = {  # UTF-32 first: its mark begins as that of UTF-16
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
ZEROS = {
    # Where a text that begins with two ASCII characters has its zero bytes.
    (1, 3, 5, 7): "UTF-16LE",
    (0, 2, 4, 6): "UTF-16BE",
    (1, 2, 3, 5, 6, 7): "UTF-32LE",
    (0, 1, 2, 4, 5, 6): "UTF-32BE",
}


def other_than_text(start: bytes) -> str | None:
    """Return what a file is and what to do about it, ``None`` if it may be text in UTF-8.

    ``start`` are its first bytes, :data:`LONGEST` of them or all that there are.
    """
    for mark, (kind, tool) in PACKED.items():
        if start.startswith(mark):
            return f"is {kind}; decompress it first ({tool})"
    for mark, kind in OTHERS.items():
        if start.startswith(mark):
            return f"is {kind}"
    encoding = _encoding(start)
    return encoding and (
        f"is {encoding}, expected UTF-8 (convert it with iconv -f {encoding} -t UTF-8, or in Excel "
        "save it as CSV UTF-8)"
    )


def _encoding(start: bytes) -> str | None:
    for mark, encoding in MARKS.items():
        if start.startswith(mark):
            return encoding
    start = start[:8]
    zeros = tuple(place for place, byte in enumerate(start) if byte == 0)
    for places, encoding in ZEROS.items():
        if zeros and zeros == tuple(place for place in places if place < len(start)):
            return encoding
    return None
