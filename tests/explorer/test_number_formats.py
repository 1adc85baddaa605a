"""The number format in a source string, and what the store makes of it."""

import pytest

from explorer.errors import ConfigError
from explorer.number_formats import join_dtype, split_dtype
from explorer.snippets import say_load
from tests.explorer.fake_models import open_all


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("gpt2", ("gpt2", "float32")),
        ("gpt2#int8", ("gpt2", "int8")),
        ("gpt2#float32", ("gpt2", "float32")),
        ("org/name#bfloat16", ("org/name", "bfloat16")),
        ("/models/c#", ("/models/c#", "float32")),
        ("/models/#1/a.gguf", ("/models/#1/a.gguf", "float32")),
        (" gpt2#int8 ", ("gpt2", "int8")),
    ],
)
def test_a_source_is_split_from_its_format(source, parts):
    assert split_dtype(source) == parts


def test_a_format_is_added_unless_one_is_named():
    assert join_dtype("gpt2", "int8") == "gpt2#int8"
    assert join_dtype("gpt2", "float32") == "gpt2"
    assert join_dtype("gpt2#int8", "float32") == "gpt2#int8"
    assert join_dtype("gpt2#int8", "bfloat16") == "gpt2#int8"
    with pytest.raises(ConfigError, match="choose float32, bfloat16, int8"):
        join_dtype("gpt2", "int3")


def test_two_formats_are_two_models_and_one_format_is_shared(store, loader):
    first = open_all(store, "org/a#int8", "ann")[-1].summary
    again = open_all(store, "org/a#int8", "bob")[-1].summary
    exact = open_all(store, "org/a", "ann")[-1].summary
    assert (first.id, again.id, exact.id) == ("org/a#int8", "org/a#int8", "org/a")
    assert loader.dtypes == ["int8", "float32"]
    assert store.summary("org/a#int8", "ann") == first
    store.unload("org/a", "ann")
    assert store.summary("org/a", "ann") is None
    assert store.summary("org/a#int8", "ann") == first


def test_the_format_may_be_given_apart(store, loader):
    steps = list(store.open("org/a", "ann", dtype="bfloat16"))
    assert steps[-1].summary.id == "org/a#bfloat16"
    with store.lease("org/a#bfloat16", "ann"):
        assert loader.dtypes == ["bfloat16"]


def test_a_path_that_the_operator_chose_stays_open_in_every_format(make_store):
    store = make_store(public=True, operator_sources={"/models/a#int8"})
    store._loader.sizes["/models/a"] = 10
    assert open_all(store, "/models/a#int8")[-1].phase == "ready"
    assert open_all(store, "/models/a")[-1].phase == "ready"


def test_a_model_that_could_never_be_read_is_refused_before_its_download(store, loader):
    loader.downloads.add("org/huge")
    with pytest.raises(Exception, match="models may take"):
        open_all(store, "org/huge")
    assert loader.calls["resolve_config", "org/huge"] == 1
    assert loader.calls["resolve", "org/huge"] == 0


def test_a_snippet_loads_in_the_same_format():
    assert say_load("gpt2#int8") == "load_model('gpt2', dtype='int8')"
    assert say_load("gpt2") == "load_model('gpt2')"
