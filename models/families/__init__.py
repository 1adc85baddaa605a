"""One file per model family; `models/registry.py` lists them."""
