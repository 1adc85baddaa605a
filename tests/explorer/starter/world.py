"""Documents of the generated world, for tests."""

import itertools
import re

from explorer.starter.documents import generate_documents

LANGUAGES = ("en", "zh")
SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"” ]*|\n")


def take(n, seed=1, **options):
    return list(itertools.islice(generate_documents(seed, **options), n))


def text_of(documents):
    return "\n".join(document.text for document in documents)


def words_inside(words, text, language):
    """Those words that the text holds: as whole words in English, anywhere in Chinese."""
    if language == "zh":
        return [word for word in words if word in text]
    row = f" {' '.join(re.findall('[a-z-]+', text.lower()))} "
    return [word for word in words if f" {word.lower()} " in row]
