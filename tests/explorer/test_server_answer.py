"""An answer of a server in the same steps as one of a model here."""

import math

import pytest

from explorer.answer_units import compute_answer_units
from explorer.conversation import AnswerSettings
from explorer.errors import ConfigError
from explorer.openai_server import OpenAIServer
from explorer.server_answer import stream_server_answer
from tests.explorer.model_server import END, make_delta, serve_models

HELLO = [{"role": "user", "content": "Hi"}]


def test_a_servers_answer_has_text_probabilities_and_an_end() -> None:
    with serve_models() as plays:
        plays.pieces = [make_delta("Par", log_probability=-0.5), make_delta("is"), END]
        server, settings = OpenAIServer(plays.url), AnswerSettings(max_new_tokens=9, seed=2)
        steps = list(stream_server_answer(server, "big", HELLO, settings))
        assert [step.text for step in steps] == ["Par", "Paris", "Paris"]
        assert [step.finish for step in steps] == [None, None, "stop"]
        token = steps[-1].tokens[0]
        assert token.probability == pytest.approx(math.exp(-0.5))
        assert (token.rank, token.id, token.n_kept) == (1, -1, None)
        assert token.alternatives[1] == ("other", pytest.approx(math.exp(-1.5)))
        unit = compute_answer_units(None, steps[-1].tokens)[0]
        assert (unit.unit.text, unit.unit.ids) == ("Par", ())
        assert plays.asked[0]["max_tokens"] == 9
        stopped = list(stream_server_answer(server, "big", HELLO, settings, stopped=lambda: True))
        assert [step.finish for step in stopped] == ["stopped"]
        with pytest.raises(ConfigError, match="list its models"):
            list(stream_server_answer(server, " ", HELLO, settings))
