"""AdamW's state of the book's checkpoints: the next step is the one that the book's code takes."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from models import load_model
from models.errors import WeightError
from models.optimizer_file import read_optimizer_state
from tests.models.test_book_gpt import book_model, save_book

SETTINGS = {"lr": 4e-3, "weight_decay": 0.1}


def random_batch(seed):
    ids = torch.randint(0, 97, (2, 8), generator=torch.Generator().manual_seed(seed))
    return ids[:, :-1], ids[:, 1:]


def step(model, optimizer, seed):
    inputs, targets = random_batch(seed)
    optimizer.zero_grad()
    cross_entropy(model(inputs).flatten(0, 1), targets.flatten()).backward()
    optimizer.step()


def trained_book_model(n_steps=3, frozen=(), tied=False, **changes):
    model = book_model(**changes)
    if tied:
        model.out_head.weight = model.tok_emb.weight
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.startswith(tuple(frozen)))
    optimizer = torch.optim.AdamW(model.parameters(), **SETTINGS)
    for seed in range(n_steps):
        step(model, optimizer, seed)
    return model, optimizer


def save_both(model, optimizer, path):
    return save_book(model, path, optimizer_state_dict=optimizer.state_dict())


def our_optimizer(model, state):
    """PyTorch's own AdamW on our parameters, with the state of each by its name."""
    optimizer = torch.optim.AdamW(model.parameters(), **SETTINGS)
    for name, parameter in model.named_parameters():
        if state[name]:
            optimizer.state[parameter] = {k: t.clone() for k, t in state[name].items()}
    return optimizer


CASES = {
    "plain": {},
    "biases on queries, keys and values": {"qkv_bias": True},
    "tied": {"tied": True},
    "only the last block trained": {
        "frozen": ("tok_emb", "pos_emb", "trf_blocks.0", "trf_blocks.1", "out_head"),
    },
}


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES)
def test_the_next_steps_equal_those_of_the_books_code(changes, tmp_path):
    theirs, optimizer = trained_book_model(**changes)
    path = save_both(theirs, optimizer, tmp_path / "gpt.pth")
    loaded = load_model(path)
    state = read_optimizer_state(path)
    parameters = dict(loaded.model.named_parameters())
    assert set(state) == set(parameters)
    for name, entries in state.items():
        parameters[name].requires_grad_(bool(entries))
    ours = our_optimizer(loaded.model, state)
    for seed in (11, 12):
        step(theirs, optimizer, seed)
        step(loaded.model, ours, seed)
    after = load_model(save_both(theirs, optimizer, tmp_path / "after.pth"))
    for name, expected in after.model.named_parameters():
        if name.endswith("k_proj.bias"):
            continue  # softmax is blind to it: its gradient is rounding noise, which Adam scales up
        torch.testing.assert_close(parameters[name].data, expected.data, atol=1e-6, rtol=0)
    moved = read_optimizer_state(tmp_path / "after.pth")
    assert {float(e["step"]) for e in moved.values() if e} == {5.0}


def test_without_the_state_the_next_step_is_another_one(tmp_path):
    theirs, optimizer = trained_book_model()
    loaded = load_model(save_both(theirs, optimizer, tmp_path / "gpt.pth"))
    loaded.model.requires_grad_(True)
    step(theirs, optimizer, 11)
    step(loaded.model, torch.optim.AdamW(loaded.model.parameters(), **SETTINGS), 11)
    difference = (loaded.model.embed.weight - theirs.tok_emb.weight).abs().max()
    assert difference > 1e-4


def test_a_copied_head_that_was_frozen_is_no_parameter_of_ours(tmp_path):
    frozen = CASES["only the last block trained"]["frozen"]
    theirs, optimizer = trained_book_model(frozen=frozen)
    theirs.out_head.weight.data = theirs.tok_emb.weight.data.clone()
    state = read_optimizer_state(save_both(theirs, optimizer, tmp_path / "gpt.pth"))
    assert "head.weight" not in state
    assert state["embed.weight"] == {}
    assert torch.equal(
        state["final_norm.bias"]["exp_avg"],
        optimizer.state[theirs.final_norm.shift]["exp_avg"],
    )


def test_an_optimizer_that_has_not_stepped_yet_has_no_entries(tmp_path):
    theirs, optimizer = trained_book_model(n_steps=0)
    state = read_optimizer_state(save_both(theirs, optimizer, tmp_path / "gpt.pth"))
    assert len(state) > 20
    assert not any(state.values())


def test_a_file_without_it_is_refused(tmp_path):
    with pytest.raises(WeightError, match="only a model") as caught:
        read_optimizer_state(save_book(book_model(), tmp_path / "gpt.pth"))
    assert caught.value.code == "optimizer-missing"


def test_another_optimizer_is_refused(tmp_path):
    theirs = book_model()
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=0.9)
    step(theirs, optimizer, 0)
    with pytest.raises(WeightError, match=r"momentum_buffer.*AdamW") as caught:
        read_optimizer_state(save_both(theirs, optimizer, tmp_path / "gpt.pth"))
    assert caught.value.code == "optimizer-unusable"


def test_groups_of_unknown_order_are_refused(tmp_path):
    theirs = book_model()
    parameters = list(theirs.parameters())
    optimizer = torch.optim.AdamW([{"params": parameters[:3]}, {"params": parameters[3:]}])
    step(theirs, optimizer, 0)
    with pytest.raises(WeightError, match="2 groups of parameters"):
        read_optimizer_state(save_both(theirs, optimizer, tmp_path / "gpt.pth"))


def drop_one(state):
    state["param_groups"][0]["params"].pop()


def misshape(state):
    state["state"][4]["exp_avg_sq"] = torch.ones(7)


DAMAGES = {
    "one parameter less": (drop_one, r"it has 43 parameters, the model 44"),
    "no groups": (lambda state: state.pop("param_groups"), "0 groups"),
    "no state": (lambda state: state.pop("state"), "not what torch.optim writes"),
    "a list for the state": (lambda state: state.update(state=[1]), "not what torch.optim writes"),
    "a mean of another shape": (misshape, r"trf_blocks\.0\.att\.W_value.* another shape"),
    "no mean": (lambda state: state["state"][4].pop("exp_avg"), "W_key|W_value"),
    "a text for a mean": (lambda s: s["state"][4].update(exp_avg="x"), "other things than numbers"),
    "a sparse mean": (
        lambda s: s["state"][4].update(exp_avg=torch.eye(42).to_sparse()),
        "not stored as plain numbers",
    ),
    "a step for each row": (lambda s: s["state"][4].update(step=torch.ones(3)), "other things"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_what_cannot_be_is_refused(damage, message, tmp_path):
    theirs, optimizer = trained_book_model(n_steps=1)
    state = optimizer.state_dict()
    damage(state)
    path = save_book(theirs, tmp_path / "gpt.pth", optimizer_state_dict=state)
    with pytest.raises(WeightError, match=message):
        read_optimizer_state(path)


def test_steps_that_are_plain_numbers_are_read_like_others(tmp_path):
    theirs, optimizer = trained_book_model(n_steps=2)
    state = optimizer.state_dict()
    for entries in state["state"].values():
        entries["step"] = int(entries["step"])
    path = save_book(theirs, tmp_path / "gpt.pth", optimizer_state_dict=state)
    steps = {float(entries["step"]) for entries in read_optimizer_state(path).values()}
    assert steps == {2.0}
