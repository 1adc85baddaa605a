"""WordPiece and Unigram in tokenizer.json: the ids and texts of the library."""

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from models.errors import TokenizerError
from models.tokenizers import load_tokenizer
from models.tokenizers.extending import extend_tokenizer

STORY = "Ada has a red ball, and the ball is round. Ben has no ball; it is hers, says Ben. " * 20
UNSEEN = ("Ada has a ball.", "balls, rounded", "  the\tball 玛丽", "", "Ben")


def train_words(model, trainer, folder, **parts):
    """A tokenizer of the library in a folder, trained on the story."""
    library = tokenizers.Tokenizer(model)
    for name, part in parts.items():
        setattr(library, name, part)
    library.train_from_iterator([STORY], trainer)
    library.save(str(folder / "tokenizer.json"))
    return folder, library


@pytest.mark.parametrize("decoder", [decoders.WordPiece(cleanup=False), None])
def test_pieces_of_words_are_those_of_the_library(tmp_path, decoder):
    trainer = trainers.WordPieceTrainer(
        vocab_size=60, special_tokens=["[UNK]", "[SEP]"], show_progress=False
    )
    folder, library = train_words(
        models.WordPiece(unk_token="[UNK]"),
        trainer,
        tmp_path,
        pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
        normalizer=normalizers.BertNormalizer(),
        **({} if decoder is None else {"decoder": decoder}),
    )
    ours = load_tokenizer(folder)
    library.decoder = decoders.WordPiece(cleanup=False)
    for text in UNSEEN:
        ids = library.encode(text, add_special_tokens=False).ids
        assert ours.encode(text) == ids
        if library.token_to_id("[UNK]") not in ids:
            assert ours.decode(ids) == library.decode(ids)
    pieces = [ours.token_bytes(i).decode() for i in ours.encode("balls")]
    assert (pieces[0][0], "".join(pieces)) == (" ", " balls")
    assert "[UNK]" in ours.decode(ours.encode("玛丽"))
    assert ours.encode("[SEP]", special=True) == [library.token_to_id("[SEP]")]


@pytest.mark.parametrize("decoder", [decoders.Metaspace(), None])
def test_unigram_is_that_of_the_library(tmp_path, decoder):
    trainer = trainers.UnigramTrainer(
        vocab_size=60, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False
    )
    folder, library = train_words(
        models.Unigram(),
        trainer,
        tmp_path,
        pre_tokenizer=pre_tokenizers.Metaspace(),
        **({} if decoder is None else {"decoder": decoder}),
    )
    ours = load_tokenizer(folder)
    library.decoder = decoders.Metaspace()
    for text in UNSEEN:
        ids = library.encode(text, add_special_tokens=False).ids
        assert ours.encode(text) == ids
        if library.token_to_id("<unk>") not in ids:
            assert ours.decode(ids) == library.decode(ids)


def test_a_vocabulary_without_a_token_for_the_unknown_says_so(tmp_path):
    trainer = trainers.UnigramTrainer(vocab_size=60, show_progress=False)
    parts = {"pre_tokenizer": pre_tokenizers.Metaspace(), "decoder": decoders.Metaspace()}
    ours = load_tokenizer(train_words(models.Unigram(), trainer, tmp_path, **parts)[0])
    assert ours.decode(ours.encode("Ada has a ball.")) == "Ada has a ball."
    with pytest.raises(TokenizerError, match="cannot write this text") as caught:
        ours.encode("玛丽")
    assert caught.value.code == "tokenizer-text-unwritable"


def test_a_word_that_is_unknown_can_be_added(tmp_path):
    trainer = trainers.WordLevelTrainer(special_tokens=["[UNK]"], show_progress=False)
    parts = {"pre_tokenizer": pre_tokenizers.Whitespace()}
    folder, library = train_words(models.WordLevel(unk_token="[UNK]"), trainer, tmp_path, **parts)
    ours = load_tokenizer(folder)
    assert ours.encode("Ada kite") == [library.token_to_id("Ada"), library.token_to_id("[UNK]")]
    grown = extend_tokenizer(ours, ["kite"])
    assert grown.encode("Ada kite", special=True) == [ours.encode("Ada")[0], ours.vocab_size]
    with pytest.raises(TokenizerError, match="one token already"):
        extend_tokenizer(ours, ["Ada"])
