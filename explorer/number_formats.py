"""In which number format a model is opened, as a part of its source string.

    smollm2-135m-instruct           float32: every digit of the checkpoint
    smollm2-135m-instruct#bfloat16  half of the memory, about 3 decimal digits
    smollm2-135m-instruct#int8      a quarter: matrices in 8 bits (models/quantize.py)

So whoever holds a source string, a tab or a browser that remembers it, holds the format too, and
the same model in two formats is two models in memory.
"""

from explorer.errors import ConfigError

DEFAULT_DTYPE = "float32"
DTYPES = (DEFAULT_DTYPE, "bfloat16", "int8")
_MARK = "#"


def split_dtype(source: str) -> tuple[str, str]:
    """A source without its format, and the format."""
    bare, mark, dtype = source.strip().rpartition(_MARK)
    return (bare, dtype) if mark and dtype in DTYPES else (source.strip(), DEFAULT_DTYPE)


def join_dtype(source: str, dtype: str) -> str:
    """A source with a format; one that it already names stays.

    Raises:
        ConfigError: There is no such format.
    """
    if dtype not in DTYPES:
        raise ConfigError(
            f"number format {dtype!r} is unknown; choose {', '.join(DTYPES)}",
            code="dtype-unknown",
            found=dtype[:40],
            known=", ".join(DTYPES),
        )
    bare, named = split_dtype(source)
    dtype = dtype if named == DEFAULT_DTYPE else named
    return bare if dtype == DEFAULT_DTYPE else f"{bare}{_MARK}{dtype}"
