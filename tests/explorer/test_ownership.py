"""Who shares a model with whom."""

import pytest

from explorer.errors import SourceError
from explorer.ownership import OwnerRule, classify_source

CATALOGUE = frozenset({"smollm2-135m-instruct"})
PUBLIC = OwnerRule(public=True)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("smollm2-135m-instruct", "catalogue"),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", "hub"),
        ("openai-community/gpt2", "hub"),
        ("https://huggingface.co/openai-community/gpt2/tree/main", "hub"),
        ("upload:abcdefghijklmnopqrstuv", "upload"),
        ("run:7@100", "run"),
        ("/etc/passwd", "path"),
        ("./models/mine", "path"),
        ("../secret", "path"),
        ("~/mine", "path"),
        (r"C:\models\mine", "path"),
        ("D:/models/mine", "path"),
        (r"\\server\share", "path"),
        (r"models\mine", "path"),
        ("a/b/c", "path"),
        ("mine.gguf", "path"),
        ("models/mine.GGUF", "path"),
        ("models/model.safetensors", "path"),
    ],
)
def test_kinds_of_sources(source, kind):
    assert classify_source(source, CATALOGUE) == kind


@pytest.mark.parametrize("source", ["smollm2-135m-instruct", "org/name"])
def test_public_models_are_shared_by_all(source):
    assert PUBLIC.key_of(source, "ann", CATALOGUE) == PUBLIC.key_of(source, "bob", CATALOGUE)


@pytest.mark.parametrize("source", ["upload:abc", "run:7@100"])
def test_private_models_stay_with_their_owner_on_a_public_host(source):
    assert PUBLIC.key_of(source, "ann", CATALOGUE) != PUBLIC.key_of(source, "bob", CATALOGUE)
    assert PUBLIC.key_of(source, "ann", CATALOGUE) == PUBLIC.key_of(source, "ann", CATALOGUE)


@pytest.mark.parametrize("source", ["upload:abc", "run:7@100", "/models/mine", "org/name"])
def test_loopback_has_one_owner_who_sees_all(source):
    rule = OwnerRule()
    assert rule.key_of(source, "ann", CATALOGUE) == rule.key_of(source, "bob", CATALOGUE)
    assert rule.owner_of("ann") == rule.owner_of("bob")


def test_a_public_host_opens_no_paths():
    with pytest.raises(SourceError, match="Hub id"):
        PUBLIC.key_of("/etc/passwd", "ann", CATALOGUE)


def test_the_operator_may_name_a_path():
    rule = OwnerRule(public=True, operator_sources=frozenset({"/models/mine"}))
    key = rule.key_of("/models/mine", "ann", CATALOGUE)
    assert key == rule.key_of("/models/mine", "bob", CATALOGUE)
    rule.check_found(key, "folder")
    with pytest.raises(SourceError, match="is a path"):
        rule.key_of("/models/mine/other", "ann", CATALOGUE)


@pytest.mark.parametrize("origin", ["folder", "file"])
def test_a_folder_that_reads_like_a_hub_id_is_refused(origin):
    key = PUBLIC.key_of("models/secret", "ann", CATALOGUE)
    with pytest.raises(SourceError, match="is a path"):
        PUBLIC.check_found(key, origin)
    PUBLIC.check_found(key, "hub")
    OwnerRule().check_found(key, origin)


def test_a_visitor_without_id_has_no_private_things():
    with pytest.raises(SourceError, match="allow this site to store"):
        PUBLIC.key_of("upload:abc", "", CATALOGUE)
    with pytest.raises(SourceError, match="allow this site to store"):
        PUBLIC.owner_of("")


@pytest.mark.parametrize("source", ["", "  \n"])
def test_an_empty_source_is_refused(source):
    with pytest.raises(SourceError, match="choose one from the list"):
        OwnerRule().key_of(source, "ann", CATALOGUE)


def test_blanks_around_a_source_do_not_matter():
    assert PUBLIC.key_of(" org/name\n", "ann", CATALOGUE).source == "org/name"
