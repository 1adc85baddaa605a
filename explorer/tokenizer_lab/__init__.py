"""Tokenizers looked into, compared, trained and extended: what the Tokens tab shows.

named.py        GPT-2, cl100k_base, o200k_base: encodings known by their name
kept.py         tokenizers that were uploaded or made here, for the whole app to use
comparison.py   one text, several tokenizers; one text in ten languages
merge_tree.py   how one word is joined, step by step
bpe_training.py byte pairs learnt from a text, every step kept
before_bpe.py   words, characters, bytes, and what they lose
extension.py    more tokens, more rows, and what the model then says
window_view.py  inputs and targets, drawn on the text

Nothing here needs torch, but for `extension.py` and for a shuffled order of windows.
"""
