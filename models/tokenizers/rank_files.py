"""Byte-level vocabularies kept as ranks: GPT-2's two files, `.tiktoken` files, and Llama 3's.

Byte pair encoding starts with single bytes and joins, again and again, the two neighbours whose
join has the lowest rank. In these vocabularies the rank is the id itself, so a table from bytes to
id is all there is. The work is done by `tiktoken.Encoding`, which we build from files: asking
`tiktoken.get_encoding` for it by name would go to the network.

Source: *Language Models are Unsupervised Multitask Learners* (2019), section 2.2; tiktoken.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from models.errors import TokenizerError
from models.tokenizers.byte_table import token_text_to_bytes
from models.tokenizers.llama3_ranks import llama3_special_tokens
from models.tokenizers.reading import damaged_file, read_json_object, read_text
from models.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    import tiktoken

# How a text is cut into words before bytes are joined. "++" never gives a character back, which
# changes nothing in what is matched and keeps long runs fast.
GPT2_WORDS = (
    r"'(?:[sdmt]|ll|ve|re)"  # English endings: I'll, don't
    r"| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++"  # a word, a number, signs, with the space before
    r"|\s++$|\s+(?!\S)|\s"  # blanks, of which the last one is left to the next word
)
_CL100K_WORDS = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
# A word changes case at most once, from capitals to small letters, and takes its ending along.
_CAPITALS, _SMALLS = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_O200K_WORDS = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_CAPITALS}]*[{_SMALLS}]+{_ENDING}"
    rf"|[^\r\n\p{{L}}\p{{N}}]?[{_CAPITALS}]+[{_SMALLS}]*{_ENDING}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_END_OF_TEXT = "<|endoftext|>"
# tiktoken's regular expressions overflow their stack on some 500,000 blanks before a word.
_LONG_BLANKS = re.compile(r"\s{50000}")


@dataclass(frozen=True)
class _RankFormat:
    words: str
    special_tokens: Mapping[str, int]


_FORMATS: Mapping[str, _RankFormat] = MappingProxyType(
    {
        "gpt2": _RankFormat(GPT2_WORDS, {_END_OF_TEXT: 50256}),
        "r50k_base": _RankFormat(GPT2_WORDS, {_END_OF_TEXT: 50256}),
        "p50k_base": _RankFormat(GPT2_WORDS, {_END_OF_TEXT: 50256}),
        "cl100k_base": _RankFormat(
            _CL100K_WORDS,
            {
                _END_OF_TEXT: 100257,
                "<|fim_prefix|>": 100258,
                "<|fim_middle|>": 100259,
                "<|fim_suffix|>": 100260,
                "<|endofprompt|>": 100276,
            },
        ),
        "o200k_base": _RankFormat(_O200K_WORDS, {_END_OF_TEXT: 199999, "<|endofprompt|>": 200018}),
    }
)


class RankTokenizer(Tokenizer):
    """A byte-level tokenizer on `tiktoken.Encoding`.

    Attributes:
        word_pattern: The regular expression that cuts texts into words.
    """

    def __init__(
        self,
        encoding: tiktoken.Encoding,
        words: str,
        special: Mapping[str, int],
        *,
        bos_id: int | None = None,
        eos_id: int | None = None,
        pad_id: int | None = None,
        adds_bos: bool = False,
    ) -> None:
        """Wrap an encoding.

        Args:
            encoding: Made from ranks and special tokens.
            words: The regular expression that cuts texts into words; the encoding's own.
            special: Special tokens, as given to the encoding.
            bos_id: As for `Tokenizer`.
            eos_id: As for `Tokenizer`.
            pad_id: As for `Tokenizer`.
            adds_bos: As for `Tokenizer`.
        """
        super().__init__(
            name=encoding.name,
            vocab_size=encoding.max_token_value + 1,
            special_tokens=special,
            bos_id=bos_id,
            eos_id=eos_id,
            pad_id=pad_id,
            adds_bos=adds_bos,
        )
        self._encoding = encoding
        self.word_pattern = words

    @property
    def ranks(self) -> dict[bytes, int]:
        """The bytes of each token that is no special one, and its rank, which is its id."""
        tokens = self._encoding.token_byte_values()
        return {token: self._encoding.encode_single_token(token) for token in tokens}

    def _encode(self, text: str, special: bool) -> list[int]:
        if _LONG_BLANKS.search(text):
            return self._encode_by_words(text, special)
        allowed = set(self.special_tokens) if special else set()
        return self._encoding.encode(text, allowed_special=allowed, disallowed_special=())

    def _encode_by_words(self, text: str, special: bool) -> list[int]:
        """The same, word by word, cut by an engine that knows no limit."""
        import regex

        ids: list[int] = []
        for index, piece in enumerate(self.split_special(text) if special else [text]):
            if index % 2:
                ids.append(self.special_tokens[piece])
                continue
            for word in regex.findall(self.word_pattern, piece):
                ids += self._encoding.encode_ordinary(word)
        return ids

    def _token_bytes(self, token: int) -> bytes | None:
        try:
            return self._encoding.decode_single_token_bytes(token)
        except KeyError:
            return None


def load_gpt2_tokenizer(
    merges_file: Path, vocabulary_file: Path, added_tokens: Sequence[str] = ()
) -> RankTokenizer:
    """Load GPT-2's byte-level BPE from its two files.

    Args:
        merges_file: `vocab.bpe` or `merges.txt`: one pair a line, in the order of joining.
        vocabulary_file: `encoder.json` or `vocab.json`: token text -> id.
        added_tokens: More special tokens; they get the ids after the vocabulary's last.

    Returns:
        The tokenizer.

    Raises:
        TokenizerError: A file is missing or damaged, or the two do not belong together.
    """
    vocabulary = _read_vocabulary(vocabulary_file)
    special = {_END_OF_TEXT: vocabulary[_END_OF_TEXT]} if _END_OF_TEXT in vocabulary else {}
    ranks = {token_text_to_bytes(t): i for t, i in vocabulary.items() if t not in special}
    _check_merges(merges_file, vocabulary, vocabulary_file)
    first_free = max(vocabulary.values()) + 1
    special |= {text: first_free + i for i, text in enumerate(added_tokens) if text not in special}
    return _build_gpt("gpt2", ranks, GPT2_WORDS, special, vocabulary_file)


def load_tiktoken(ranks_file: Path, name: str) -> RankTokenizer:
    """Load a `.tiktoken` file: on each line a token's bytes in base64, and its rank.

    Args:
        ranks_file: The file.
        name: Which encoding it is, as it says neither its word pattern nor its special tokens:
            `o200k_base`, `cl100k_base`, `gpt2`, `r50k_base` or `p50k_base`.

    Returns:
        The tokenizer.

    Raises:
        TokenizerError: The file is missing or damaged, or the name is unknown.
    """
    if name not in _FORMATS:
        raise TokenizerError(
            f"{ranks_file.name} holds ranks alone, and {name!r} names no encoding; known are "
            f"{', '.join(_FORMATS)}. Rename it to one of them.",
            code="tokenizer-encoding-unknown",
            file=ranks_file.name,
            found=name,
            known=", ".join(_FORMATS),
        )
    ranks = _read_ranks(ranks_file)
    return _build_gpt(name, ranks, _FORMATS[name].words, _FORMATS[name].special_tokens, ranks_file)


def load_llama3_tokenizer(ranks_file: Path) -> RankTokenizer:
    """Load Llama 3's `tokenizer.model`, which is a `.tiktoken` file.

    Args:
        ranks_file: The file; others of its folder tell Llama 3 from 3.1 (llama3_ranks.py).

    Returns:
        The tokenizer; texts end with `<|end_of_text|>`, answers with `<|eot_id|>`.

    Raises:
        TokenizerError: The file is damaged.
    """
    ranks = _read_ranks(ranks_file)
    special = llama3_special_tokens(len(ranks), ranks_file.parent)
    return RankTokenizer(
        build_encoding(ranks_file.parent.name, ranks, _CL100K_WORDS, special, ranks_file),
        _CL100K_WORDS,  # Llama 3's own pattern says the same in other words
        special,
        bos_id=special["<|begin_of_text|>"],
        eos_id=special["<|end_of_text|>"],
        pad_id=special.get("<|finetune_right_pad_id|>"),
        adds_bos=True,
    )


def _read_ranks(path: Path) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise damaged_file(path, f"line {number} is no token and rank") from error
    return ranks


def _read_vocabulary(path: Path) -> dict[str, int]:
    vocabulary = read_json_object(path)
    ids = {text: i for text, i in vocabulary.items() if isinstance(i, int) and 0 <= i < 2**31}
    if not ids or len(ids) < len(vocabulary):
        raise damaged_file(path, "it is no table from token to id")
    return ids


def _check_merges(path: Path, vocabulary: Mapping[str, int], vocabulary_file: Path) -> None:
    """The n-th merge must make the token that follows the 256 bytes and n others."""
    lines = [line for line in read_text(path).splitlines() if line and line[:8] != "#version"]
    previous = -1
    for line in lines:
        rank = vocabulary.get(line.replace(" ", "", 1), -1)
        if rank <= previous:
            raise damaged_file(
                path,
                f"its pair {line!r} does not stand in the order of {vocabulary_file.name}; the two "
                f"files belong to different tokenizers, or need a tokenizer.json",
            )
        previous = rank


def _build_gpt(
    name: str, ranks: dict[bytes, int], words: str, special: Mapping[str, int], path: Path
) -> RankTokenizer:
    encoding = build_encoding(name, ranks, words, special, path)
    end = special.get(_END_OF_TEXT)
    # GPT-2 has one token for both: it separates the documents it was trained on.
    begin = end if words == GPT2_WORDS else None
    return RankTokenizer(encoding, words, special, bos_id=begin, eos_id=end)


def build_encoding(
    name: str, ranks: dict[bytes, int], words: str, special: Mapping[str, int], path: Path
) -> tiktoken.Encoding:
    """Build an encoding, after checking what the library would not say clearly.

    Args:
        name: Of the tokenizer.
        ranks: Bytes of a token -> its id; a smaller id is joined first.
        words: The regular expression that cuts texts into words.
        special: Special token -> its id.
        path: The file that they come from, for the message.

    Raises:
        TokenizerError: A single byte is missing, an id is given twice, or the pattern is none.
    """
    import tiktoken

    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise damaged_file(path, f"{len(missing)} of the 256 single bytes are missing")
    clash = set(ranks.values()) & set(special.values())
    if clash or len(set(ranks.values())) != len(ranks):
        raise damaged_file(path, f"an id is given twice (or {sorted(clash)} are special tokens)")
    try:
        return tiktoken.Encoding(
            name, pat_str=words, mergeable_ranks=ranks, special_tokens=dict(special)
        )
    except ValueError as error:
        raise damaged_file(path, f"its word pattern is no regular expression: {error}") from error


def load_gpt2_folder(folder: Path) -> RankTokenizer | None:
    """Load GPT-2's files from a folder, under OpenAI's or Hugging Face's names.

    Args:
        folder: Where they may lie, with `added_tokens.json` perhaps.

    Returns:
        The tokenizer, or None when the folder has neither pair of files.

    Raises:
        TokenizerError: The files are there and cannot be used.
    """
    for merges, vocabulary in (("merges.txt", "vocab.json"), ("vocab.bpe", "encoder.json")):
        if (folder / merges).is_file() and (folder / vocabulary).is_file():
            added = folder / "added_tokens.json"
            more = read_json_object(added) if added.is_file() else {}
            tokenizer = load_gpt2_tokenizer(folder / merges, folder / vocabulary, list(more))
            if any(tokenizer.special_tokens[text] != i for text, i in more.items()):
                raise damaged_file(added, f"ids {json.dumps(more)} do not follow the vocabulary")
            return tokenizer
    return None


def to_library_pattern(word_pattern: str) -> str:
    r"""A pattern of rank_files.py for the `tokenizers` library.

    There "++" repeats a repetition instead of keeping what it took, and "$" is the end of any line.
    """
    return re.sub(r"([+*?]|\{\d+,\d+\})\+", r"\1", word_pattern).replace("$", r"\z")
