"""What is learned of a row: by characters, and by position in a batch."""

import pytest
import torch

from explorer.datasets.examples import Prompt
from explorer.errors import ConfigError, DataError
from explorer.training.answer_rows import AnswerRow, RowWriter, mark_answer, pack_rows
from explorer.training.objectives.row_examples import collate_rows
from models.tokenizers import CHATML, ChatTemplate
from models.tokenizers.bpe_trainer import train_bpe

TEXT = "Who has the red ball? Mia has the red ball. ### Instruction: Response:\n\n" * 9
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def make_tokenizer():
    return train_bpe(TEXT, vocab_size=330, special_tokens=SPECIAL).to_tokenizer("tiny")


def whole(*ids: int) -> AnswerRow:
    return AnswerRow(ids=ids, learned=(True,) * len(ids))


def test_a_batch_keeps_the_first_end_token_by_position() -> None:
    end = 50256
    rows = [whole(0, 1, 2, 3, 4, end), whole(5, 6, end), whole(7, 8, 9, end)]
    batch = collate_rows(rows, end)
    assert batch.ids.tolist() == [[0, 1, 2, 3, 4], [5, 6, end, end, end], [7, 8, 9, end, end]]
    assert batch.targets.tolist() == [
        [1, 2, 3, 4, end],
        [6, end, -100, -100, -100],
        [8, 9, end, -100, -100],
    ]
    assert batch.valid is not None
    assert batch.valid.sum(dim=1).tolist() == [5, 2, 3]


def test_the_question_and_what_stands_before_the_answer_are_left_out() -> None:
    tokenizer = make_tokenizer()
    asked = Prompt(instruction="Who has the red ball?", input="Mia has the red ball.")
    for template in ("alpaca", "phi3"):
        writer = RowWriter(tokenizer, template, None, 400)
        row = writer.write_row(asked, "Mia has it.")
        learned = [i for i, on in zip(row.ids, row.learned, strict=True) if on]
        assert tokenizer.decode(learned) == "Mia has it.<|endoftext|>"
        assert learned[-1] == tokenizer.eos_id
        assert not row.learned[0]


def test_a_token_across_the_border_is_found_by_characters() -> None:
    """ "e red" is one token here: counting the question's own tokens would be off by one."""
    tokenizer = make_tokenizer()
    text = "has the red ball"
    ids = tokenizer.encode(text)
    border = 9  # inside the token of " red"
    learned = mark_answer(tokenizer, ids, text, (border, len(text)))
    pieces = [tokenizer.decode([i]) for i in ids]
    ends = [len("".join(pieces[: k + 1])) for k in range(len(pieces))]
    assert list(learned) == [end > border for end in ends]
    counted = len(tokenizer.encode(text[:border]))
    assert counted != learned.index(True)


def test_the_models_own_template_ends_the_answer_with_its_end_token() -> None:
    tokenizer = make_tokenizer()
    tokenizer.eos_id = tokenizer.special_tokens["<|im_end|>"]
    chat = ChatTemplate(CHATML.template, tokenizer)
    writer = RowWriter(tokenizer, "chat", chat, 400)
    hello = Prompt(instruction="Say <|im_end|>", earlier=(("user", "Hi"), ("assistant", "Mia has")))
    row = writer.write_row(hello, "Mia has it.")
    learned = [i for i, on in zip(row.ids, row.learned, strict=True) if on]
    assert tokenizer.decode(learned) == "Mia has it.<|im_end|>"
    assert row.ids.count(tokenizer.eos_id) == 4  # one a turn: the typed one is plain text


def test_long_rows_are_cut_on_the_right_and_counted() -> None:
    tokenizer = make_tokenizer()
    asked = Prompt(instruction="Who has the red ball?")
    full = RowWriter(tokenizer, "phi3", None, 400).write_row(asked, "Mia has it.")
    short = RowWriter(tokenizer, "phi3", None, len(full.ids) - 2).write_row(asked, "Mia has it.")
    assert short.ids == full.ids[:-2]
    assert short.n_cut == 2
    with pytest.raises(DataError) as error:
        RowWriter(tokenizer, "phi3", None, 4).write_row(asked, "Mia has it.", row=17)
    assert error.value.code == "tune-row-long"
    assert error.value.facts["row"] == 17


def test_packs_hold_whole_rows_and_never_learn_a_first_token() -> None:
    rows = [
        whole(1, 2, 3),
        whole(4, 5),
        whole(6, 7, 8, 9),
        whole(
            10,
        ),
    ]
    packs = pack_rows(rows, 6)
    assert [pack.ids for pack in packs] == [(1, 2, 3, 4, 5, 10), (6, 7, 8, 9)]
    assert packs[0].learned == (False, True, True, False, True, False)


def test_a_base_model_has_no_template_of_its_own() -> None:
    with pytest.raises(ConfigError) as error:
        RowWriter(make_tokenizer(), "chat", None, 100)
    assert error.value.code == "tune-no-chat"


def test_training_on_everything_leaves_padding_out() -> None:
    row = AnswerRow(ids=(3, 4, 5, 6), learned=(False, False, True, True))
    other = AnswerRow(ids=(7, 8), learned=(False, True))
    batch = collate_rows([row, other], 0, train_on_all=True)
    assert batch.targets.tolist() == [[4, 5, 6], [8, -100, -100]]
    assert batch.count_targets() == 4
    assert torch.equal(collate_rows([row, other], 0).targets[0], torch.tensor([-100, 5, 6]))
