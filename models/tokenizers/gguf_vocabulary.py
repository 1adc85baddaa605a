"""Builds a tokenizer from the metadata of a GGUF file.

    tokenizer.ggml.model        "gpt2": byte-level BPE; "llama": SentencePiece
    tokenizer.ggml.tokens       text of each token, in the order of ids
    tokenizer.ggml.token_type   3: special (control), 4: added by the user of the vocabulary

    "gpt2"
    tokenizer.ggml.pre          how texts are cut into words first, by name
    tokenizer.ggml.merges       "Ġ t", "Ġ a", ...: the pairs that are joined, in order

    "llama"
    tokenizer.ggml.scores             of each token; the pair whose join has the highest goes first
    tokenizer.ggml.add_space_prefix   whether a text gets a space in front; true if absent

Source: *GGUF specification*, "Tokenizer"; the word patterns are those of the tokenizer.json files
that the models were published with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from models.errors import TokenizerError
from models.gguf_file import GgufFile
from models.tokenizers.library_tokenizer import LibraryTokenizer
from models.tokenizers.reading import check_merges, damaged_file
from models.tokenizers.sentencepiece_file import Piece, PieceKind, build_bpe_model
from models.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
from models.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    import tokenizers

_CONTROL, _USER_DEFINED = 3, 4
_LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2_WORDS = _LLAMA3_WORDS.replace(r"\p{N}{1,3}", r"\p{N}")
# Mistral's: a word changes case at most once, from capitals to small letters.
_CAPITAL, _SMALL = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_TEKKEN_WORDS = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_CAPITAL}]*[{_SMALL}]+|[^\r\n\p{{L}}\p{{N}}]?[{_CAPITAL}]+[{_SMALL}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class _WordRule:
    """How a text is cut into words.

    Attributes:
        words: A regular expression, or None for GPT-2's own.
        single_digits: Whether each digit is a word of its own.
        composes: Whether accents are composed first (Unicode NFC).
        whole_words: Whether a word that is a token is taken as it is, whatever the merges say.
    """

    words: str | None = None
    single_digits: bool = False
    composes: bool = False
    whole_words: bool = False


_GPT2 = _WordRule()
_SMOLLM = _WordRule(single_digits=True)
_LLAMA3 = _WordRule(words=_LLAMA3_WORDS, whole_words=True)
_QWEN2 = _WordRule(words=_QWEN2_WORDS, composes=True)
_OLMO = _WordRule(composes=True)
_CL100K = _WordRule(words=_LLAMA3_WORDS)  # Olmo 2 and 3 took it over; the name is dbrx's
_TEKKEN = _WordRule(words=_TEKKEN_WORDS, whole_words=True)
_WORD_RULES: Mapping[str, _WordRule] = MappingProxyType(
    {
        "gpt-2": _GPT2,
        "default": _GPT2,
        "smollm": _SMOLLM,
        "llama-bpe": _LLAMA3,
        "llama3": _LLAMA3,
        "llama-v3": _LLAMA3,
        "qwen2": _QWEN2,
        "deepseek-r1-qwen": _QWEN2,
        "olmo": _OLMO,
        "dbrx": _CL100K,
        "tekken": _TEKKEN,
    }
)


def load_gguf_tokenizer(gguf: GgufFile) -> Tokenizer:
    """Build the tokenizer of a GGUF file.

    Args:
        gguf: The open file.

    Returns:
        The tokenizer.

    Raises:
        TokenizerError: The file has none, it is damaged, or of a kind that we cannot build.
    """
    kind = gguf.metadata.get("tokenizer.ggml.model")
    if kind == "llama":
        return _load_sentencepiece(gguf)
    if kind != "gpt2":
        raise _unsupported_kind(gguf, kind)
    return _load_byte_level(gguf)


def _load_byte_level(gguf: GgufFile) -> LibraryTokenizer:
    # Files from before April 2024 name no rule; they were read as "default".
    rule_name = gguf.metadata.get("tokenizer.ggml.pre", "default")
    if not isinstance(rule_name, str) or rule_name not in _WORD_RULES:
        raise TokenizerError(
            f"{gguf.path.name} cuts words by the rule {rule_name!r:.80}; known are "
            f"{', '.join(_WORD_RULES)}. Open the model as a folder with tokenizer.json instead.",
            code="tokenizer-unsupported",
            file=gguf.path.name,
            found=f"{rule_name}"[:80],
            known=", ".join(_WORD_RULES),
        )
    rule = _WORD_RULES[rule_name]
    tokens = _read_strings(gguf, "tokenizer.ggml.tokens")
    library = _build_library(gguf, tokens, rule)
    adds_bos = gguf.metadata.get("tokenizer.ggml.add_bos_token", rule is _LLAMA3)
    bos_id = _read_id(gguf, "bos", len(tokens))
    return LibraryTokenizer(
        library,
        name=str(gguf.metadata.get("general.name", gguf.path.stem)),
        writing="byte_level",
        bos_id=bos_id,
        eos_id=_read_id(gguf, "eos", len(tokens)),
        pad_id=_read_id(gguf, "padding", len(tokens)),
        adds_bos=bool(adds_bos) and bos_id is not None,
    )


def _unsupported_kind(gguf: GgufFile, kind: object) -> TokenizerError:
    if kind is None:
        return damaged_file(gguf.path, "it holds no tokenizer (tokenizer.ggml.model is missing)")
    return TokenizerError(
        f"{gguf.path.name} has a vocabulary of kind {kind!r}; known are 'gpt2' (byte-level BPE) "
        f"and 'llama' (SentencePiece). Choose a model that generates text, such as a Llama, Qwen, "
        f"Gemma or GPT-2.",
        code="tokenizer-unsupported",
        file=gguf.path.name,
        found=kind,
        known="gpt2, llama",
    )


def _load_sentencepiece(gguf: GgufFile) -> SentencePieceTokenizer:
    tokens = _read_strings(gguf, "tokenizer.ggml.tokens")
    bos_id = _read_id(gguf, "bos", len(tokens))
    try:
        return SentencePieceTokenizer(
            build_bpe_model(
                _read_pieces(gguf, tokens),
                adds_space=bool(gguf.metadata.get("tokenizer.ggml.add_space_prefix", True)),
            ),
            name=str(gguf.metadata.get("general.name", gguf.path.stem)),
            added={},
            spaces="always",
            bos_id=bos_id,
            eos_id=_read_id(gguf, "eos", len(tokens)),
            pad_id=_read_id(gguf, "padding", len(tokens)),
            adds_bos=bool(gguf.metadata.get("tokenizer.ggml.add_bos_token", True))
            and bos_id is not None,
        )
    except ValueError as error:
        raise damaged_file(gguf.path, f"its vocabulary cannot be used ({error})") from error


def _read_pieces(gguf: GgufFile, tokens: list[str]) -> list[Piece]:
    scores = gguf.metadata.get("tokenizer.ggml.scores")
    if not isinstance(scores, list) or len(scores) != len(tokens):
        raise damaged_file(gguf.path, f"tokenizer.ggml.scores does not list {len(tokens)} scores")
    types = _read_types(gguf, len(tokens))
    return [
        Piece(text, float(score), PieceKind(kind))
        for text, score, kind in zip(tokens, scores, types, strict=True)
    ]


def _build_library(gguf: GgufFile, tokens: list[str], rule: _WordRule) -> tokenizers.Tokenizer:
    import tokenizers
    from tokenizers import AddedToken, decoders, models, normalizers

    merges = []
    for pair in _read_strings(gguf, "tokenizer.ggml.merges"):
        left, _, right = pair.partition(" ")
        merges.append((left, right))
    vocabulary = {text: i for i, text in enumerate(tokens)}
    check_merges(gguf.path, merges, vocabulary)
    try:
        library = tokenizers.Tokenizer(
            models.BPE(vocab=vocabulary, merges=merges, ignore_merges=rule.whole_words)
        )
    except Exception as error:  # the library raises nothing more precise
        raise damaged_file(gguf.path, f"its merges do not fit its tokens ({error})") from error
    library.pre_tokenizer = _build_word_cutter(rule)
    library.decoder = decoders.ByteLevel()
    if rule.composes:
        library.normalizer = normalizers.NFC()
    types = _read_types(gguf, len(tokens))
    for wanted, is_special in ((_CONTROL, True), (_USER_DEFINED, False)):
        texts = [text for text, kind in zip(tokens, types, strict=True) if kind == wanted and text]
        added = [AddedToken(text, special=is_special, normalized=False) for text in texts]
        (library.add_special_tokens if is_special else library.add_tokens)(added)
    return library


def _build_word_cutter(rule: _WordRule) -> tokenizers.pre_tokenizers.PreTokenizer:
    from tokenizers import Regex, pre_tokenizers

    steps: list[pre_tokenizers.PreTokenizer] = []
    if rule.single_digits:
        steps.append(pre_tokenizers.Digits(individual_digits=True))
    if rule.words is not None:
        steps.append(pre_tokenizers.Split(Regex(rule.words), behavior="isolated"))
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=rule.words is None))
    return pre_tokenizers.Sequence(steps)


def _read_strings(gguf: GgufFile, key: str) -> list[str]:
    value = gguf.metadata.get(key)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise damaged_file(gguf.path, f"{key} is missing or no list of strings")
    return value


def _read_types(gguf: GgufFile, n_tokens: int) -> list[int]:
    types = gguf.metadata.get("tokenizer.ggml.token_type")
    is_list = isinstance(types, list) and all(isinstance(kind, int) for kind in types)
    if not isinstance(types, list) or not is_list or len(types) != n_tokens:
        raise damaged_file(gguf.path, f"tokenizer.ggml.token_type does not list {n_tokens} types")
    return types


def _read_id(gguf: GgufFile, role: str, n_tokens: int) -> int | None:
    value = gguf.metadata.get(f"tokenizer.ggml.{role}_token_id")
    if value is None:
        return None
    if not isinstance(value, int) or not 0 <= value < n_tokens:
        raise damaged_file(gguf.path, f"its {role} token {value!r} is not one of {n_tokens} tokens")
    return value
