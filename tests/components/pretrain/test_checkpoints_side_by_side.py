"""Two checkpoints of one run, asked the same in the Chat tab."""

import torch

from models import load_model
from tests.components.run_folders import folder_of


def continue_greedily(folder, text, n_new):
    """The plainest way: the whole text through the model again for each token."""
    loaded = load_model(folder)
    ids = loaded.tokenizer.encode(text)
    for _ in range(n_new):
        with torch.no_grad():
            ids.append(int(loaded.model(torch.tensor([ids]))[0, -1].argmax()))
    return ids[-n_new:]


def test_two_checkpoints_of_one_run_answer_side_by_side(client, home, trained):
    sources = {"left": f"run:{trained}@0", "right": f"run:{trained}@3"}
    both = client.predict(
        "The dog", **sources, max_new_tokens=6, temperature=0, api_name="/chat_side_by_side"
    )
    folders = [folder_of(home, trained).path / f"step-{step:08}" for step in (0, 3)]
    assert both["ids"] == [continue_greedily(folder, "The dog", 6) for folder in folders]
    assert both["ids"][0] != both["ids"][1]
    shown = client.predict(
        "The dog", **sources, max_new_tokens=6, temperature=0, api_name="/chat_side"
    )
    assert [len(chips.splitlines()) for chips in shown[:2]] == [6, 6]
