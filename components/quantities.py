"""Numbers as people read them: counts, bytes and durations, the same in every tab."""

# Short names of the number formats; anything else is shown as it is.
_SHORT_DTYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


def short_count(count: int) -> str:
    """Write a count with three or four significant digits: 134515008 becomes `134.5 M`."""
    for size, letter in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.1f} {letter}"
    return str(count)


def short_bytes(count: float) -> str:
    """Write a number of bytes in decimal units: 538060032 becomes `538 MB`."""
    for size, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= size:
            number = count / size
            return f"{number:.0f} {unit}" if number >= 100 else f"{number:.1f} {unit}"
    return f"{count:.0f} B"


def short_dtype(dtype: str) -> str:
    """Write the name of a number format briefly: `float32` becomes `fp32`."""
    return _SHORT_DTYPES.get(dtype, dtype)


def short_duration(seconds: float) -> str:
    """Write a duration as `42 s`, `3 min 5 s` or `2 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
