"""The tokenizer of a model that was found, without its weights and without torch."""

from models.gguf_file import GgufFile
from models.gguf_layout import read_vocab_size
from models.json_files import read_json
from models.registry import find_family
from models.sources import ResolvedSource
from models.tokenizers import Tokenizer, fit_tokenizer, load_gguf_tokenizer, load_tokenizer


def load_source_tokenizer(source: ResolvedSource) -> Tokenizer:
    """Load the tokenizer that the model itself would get.

    Args:
        source: A folder or a GGUF file. A folder without config.json holds a tokenizer alone.

    Returns:
        The tokenizer.

    Raises:
        TokenizerError: There is none, it cannot be read, or it is not of this model.
        ConfigError: A family or part that we do not have.
        WeightError: The file that holds the configuration is damaged.
        SourceError: A GGUF file that cannot be opened.
    """
    if source.kind == "gguf":
        gguf = GgufFile(source.path)
        return fit_tokenizer(load_gguf_tokenizer(gguf), read_vocab_size(gguf))
    tokenizer = load_tokenizer(source.path)
    if not (source.path / "config.json").is_file():
        return tokenizer
    values = read_json(source.path / "config.json")
    family = find_family(values)
    assert family.config_from_hf is not None  # find_family matched one of its model_types
    return fit_tokenizer(tokenizer, family.config_from_hf(values).vocab_size)
