"""Byte pair encoding, trained from scratch: the pair that occurs most often becomes a token.

    words   low ×5   lower ×2   newest ×6   widest ×3
    start   l o w    l o w e r  n e w e s t  w i d e s t
    1       (e, s) occurs 6 + 3 = 9 times       ->  n e w es t    w i d es t
    2       (es, t) 9 times                     ->  n e w est     w i d est
    3       (l, o) 5 + 2 = 7 times              ->  lo w    lo w e r
    ...     until the vocabulary is full, or no pair occurs often enough

How the counts are kept, and which pair goes first when two are equal: bpe_merger.py. How a text
becomes words: bpe_words.py.

Source: *Neural Machine Translation of Rare Words with Subword Units* (2016), arXiv 1508.07909,
section 3.2 and algorithm 1; on bytes: *Language Models are Unsupervised Multitask Learners* (2019),
section 2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from models.errors import TokenizerError
from models.tokenizers.bpe_merger import Merger, MergeStep, Pair
from models.tokenizers.bpe_words import (
    StartSymbols,
    WordCutting,
    build_word_cutter,
    count_words,
    list_alphabet,
    write_symbols,
)
from models.tokenizers.library_tokenizer import LibraryTokenizer
from models.tokenizers.trained import check_special_tokens, empty_training_text, wrap_trained

TextSource = str | Iterable[str] | Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class BpeVocabulary:
    """What training gives.

    Attributes:
        vocab: Token text -> id.
        merges: The joins in the order in which they are to be made.
        special_tokens: Their texts; ids 0, 1 ...
        start: What joining started from.
        pre_tokenizer: How texts are cut into words.
        asked_size: How many tokens were asked for.
    """

    vocab: Mapping[str, int]
    merges: tuple[Pair, ...]
    special_tokens: tuple[str, ...]
    start: StartSymbols
    pre_tokenizer: WordCutting
    asked_size: int

    @property
    def stopped_early(self) -> bool:
        """Whether no pair was left that occurs often enough, before the vocabulary was full."""
        return len(self.vocab) < self.asked_size

    def to_tokenizer(self, name: str = "bpe") -> LibraryTokenizer:
        """Make a tokenizer.

        Args:
            name: What a page calls it.

        Returns:
            The tokenizer. If it started from characters, others than those of the training text
            are an error that names them.
        """
        from tokenizers import Tokenizer, decoders, models

        in_bytes = self.start == "bytes"
        library = Tokenizer(models.BPE(dict(self.vocab), list(self.merges)))
        cutter = build_word_cutter(self.pre_tokenizer, self.start)
        if cutter is not None:
            library.pre_tokenizer = cutter
        library.decoder = decoders.ByteLevel() if in_bytes else decoders.Fuse()
        return wrap_trained(
            library,
            self.special_tokens,
            name=name,
            writing="byte_level" if in_bytes else "plain",
        )


def iterate_merges(
    text: TextSource,
    *,
    vocab_size: int,
    pre_tokenizer: WordCutting = "gpt2",
    special_tokens: Sequence[str] = (),
    start: StartSymbols = "bytes",
    min_frequency: int = 2,
    n_top_pairs: int = 10,
) -> Iterator[MergeStep]:
    """Train step by step.

    Args:
        text: As for `train_bpe`.
        vocab_size: As for `train_bpe`.
        pre_tokenizer: As for `train_bpe`.
        special_tokens: As for `train_bpe`.
        start: As for `train_bpe`.
        min_frequency: As for `train_bpe`.
        n_top_pairs: How many of the best pairs each step reports.

    Returns:
        The steps, each made when it is asked for.

    Raises:
        TokenizerError: As for `train_bpe`, at once.
    """
    words = _read_words(text, pre_tokenizer, special_tokens, start)
    merger = _prepare(words, vocab_size, special_tokens, start, min_frequency)
    return merger.run(vocab_size, n_top_pairs)


def train_bpe(
    text: TextSource,
    *,
    vocab_size: int,
    pre_tokenizer: WordCutting = "gpt2",
    special_tokens: Sequence[str] = (),
    start: StartSymbols = "bytes",
    min_frequency: int = 2,
    on_step: Callable[[MergeStep], None] | None = None,
) -> BpeVocabulary:
    """Train a vocabulary.

    Args:
        text: A text; several texts, across which nothing is joined; or words with their counts.
        vocab_size: Tokens wanted, special tokens and start symbols included.
        pre_tokenizer: How texts are cut into words.
        special_tokens: They get the first ids, and are cut out of the text.
        start: Whether to start from the 256 bytes or from the characters of the text.
        min_frequency: A pair that occurs less often is not joined; at least 1.
        on_step: Called after each join, with the ten best pairs.

    Returns:
        The vocabulary; `stopped_early` says whether it is smaller than asked.

    Raises:
        TokenizerError: The text is empty or has a word without end, the vocabulary is smaller than
            what joining starts from, or a special token cannot be told from others.
    """
    words = _read_words(text, pre_tokenizer, special_tokens, start)
    merger = _prepare(words, vocab_size, special_tokens, start, min_frequency)
    for step in merger.run(vocab_size, 0 if on_step is None else 10):
        if on_step is not None:
            on_step(step)
    return BpeVocabulary(
        vocab=merger.ids,
        merges=tuple(merger.merges),
        special_tokens=tuple(special_tokens),
        start=start,
        pre_tokenizer=pre_tokenizer,
        asked_size=vocab_size,
    )


def _read_words(
    text: TextSource,
    cutting: WordCutting,
    special_tokens: Sequence[str],
    start: StartSymbols,
) -> dict[str, int]:
    if isinstance(text, Mapping):
        counts: Mapping[str, int] = text
    else:
        counts = count_words([text] if isinstance(text, str) else text, cutting, special_tokens)
    words = write_symbols(counts, start)
    if not words:
        raise empty_training_text()
    return words


def _prepare(
    words: Mapping[str, int],
    vocab_size: int,
    special_tokens: Sequence[str],
    start: StartSymbols,
    min_frequency: int,
) -> Merger:
    alphabet = list_alphabet(words, start)
    check_special_tokens(special_tokens, alphabet)
    needed = len(special_tokens) + len(alphabet)
    if vocab_size < needed:
        raise TokenizerError(
            f"vocab_size={vocab_size} is smaller than the {needed} tokens that joining starts from "
            f"({len(special_tokens)} special, {len(alphabet)} {start}); choose {needed} or more",
            code="bpe-vocabulary-small",
            asked=vocab_size,
            needed=needed,
        )
    if min_frequency < 1:
        raise TokenizerError(
            f"min_frequency={min_frequency} is below 1; choose 1 to join pairs that occur once",
            code="bpe-frequency-low",
            value=min_frequency,
        )
    lengths = ((len(w) if start == "bytes" else len(w.encode()), n) for w, n in words.items())
    return Merger(
        words,
        [*special_tokens, *alphabet],
        n_special=len(special_tokens),
        n_bytes=sum(length * n for length, n in lengths),
        min_frequency=min_frequency,
    )
