"""The world that the starter model learns from: a seeded generator of small consistent texts.

A document draws a scene (a few people, what they own, where they live), and tells it with templates
of a phrasebook in words of a lexicon. Read in this order: `dice` and `template` (chance and text),
`lexicon` with `words_*` (words), `phrasebook` with `stories_*` and `phrases_*` (sentences), `scene`
(what is true), `narrative` and `games` (kinds of text), `documents` (the generator).
"""
