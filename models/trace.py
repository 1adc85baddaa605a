"""`Trace`: the one window into a forward pass.

Every module hands its named activations to `tap`:

    x = tap(trace, "blocks.3.resid_mid", x)

If the trace wants that name, the tensor is recorded; if it holds an edit for it, the edited tensor
is returned and the pass goes on with it. Heatmaps, logit lens, ablation, patching and painted masks
all are records and edits; there is no second mechanism, and nothing is registered on the model, so
that two visitors can look into the same model at once.

Names (L = layer number; shapes as in `models/__init__.py`):

    embed                       (B, T, D)      token (+ learned position) embedding
    blocks.L.resid_pre          (B, T, D)      the stream as it enters block L
    blocks.L.attn.q             (B, H, T, d)   queries, after rotation
    blocks.L.attn.k             (B, K, T, d)   keys of the new tokens, after rotation
    blocks.L.attn.v             (B, K, T, d)   values of the new tokens
    blocks.L.attn.latent        (B, T, C)      with MlaConfig: what keys and values are read from
    blocks.L.attn.scores        (B, H, T, S)   scaled scores, before the mask
    blocks.L.attn.mask          (B, 1, T, S)   bool, True = may attend
    blocks.L.attn.pattern       (B, H, T, S)   softmax over the keys; each row sums to 1
    blocks.L.attn.z             (B, H, T, d)   pattern @ values, per head
    blocks.L.attn_out           (B, T, D)      what attention adds to the stream
    blocks.L.resid_mid          (B, T, D)      resid_pre + attn_out
    blocks.L.ffn.pre            (B, T, F)      what enters the activation
    blocks.L.ffn.post           (B, T, F)      what enters the down projection
    blocks.L.router.logits      (B, T, E)      with experts: before the softmax
    blocks.L.router.weights     (B, T, k)      of the k experts that each token uses
    blocks.L.router.ids         (B, T, k)      which ones
    blocks.L.ffn_out            (B, T, D)      what the feed-forward adds to the stream
    blocks.L.resid_post         (B, T, D)      resid_mid + ffn_out
    logits                      (B, T, V)

In an encoder-decoder all names but `logits` begin with `encoder.` or `decoder.`, and a decoder's
block has, between resid_mid and ffn.pre (S = tokens of the source):

    blocks.L.cross_attn.q ... z                what `attn` has, from one text to the other
    blocks.L.cross_attn_out     (B, T, D)      what it adds to the stream
    blocks.L.resid_cross        (B, T, D)      resid_mid + cross_attn_out

Through a cache, S counts the positions of the longest row; where a window layer has dropped keys,
their columns hold zeros and are masked. With MlaConfig an edit of k or v lasts for its own pass,
one of the latent stays in the cache.

The names follow TransformerLens (Nanda & Bloom 2022); `attn_out` and `ffn_out` here are exactly
what is added to the stream.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Callable, Iterable, Mapping

from torch import Tensor

from models.errors import ExplorerError

Edit = Callable[[Tensor], Tensor]


class TraceError(ExplorerError):
    """A trace that names nothing, or an edit that returns something else than it was given."""


class Trace:
    """What to record and what to change in one forward pass.

    Args:
        record: Names to keep; `*` stands for any run of characters.
        edits: Name or pattern -> function that gets the tensor and returns its replacement, of the
            same shape and type; it may change the one that it gets.

    Raises:
        TraceError: `record` is a single text instead of several names.
    """

    def __init__(self, record: Iterable[str] = (), edits: Mapping[str, Edit] | None = None) -> None:
        if isinstance(record, str):
            raise TraceError(f"record={record!r} is one text; give a tuple of names: ({record!r},)")
        self._record = tuple(record)
        self._edits = dict(edits or {})
        self._recorded: dict[str, Tensor] = {}
        self._seen: set[str] = set()

    def wants(self, name: str) -> bool:
        """Whether `name` would be recorded or edited."""
        return any(fnmatch.fnmatchcase(name, p) for p in (*self._record, *self._edits))

    def visit(self, name: str, tensor: Tensor) -> Tensor:
        """Edit and record one activation; returns what the pass goes on with.

        Raises:
            TraceError: An edit returned another shape or type.
        """
        self._seen.add(name)
        for pattern, edit in self._edits.items():
            if fnmatch.fnmatchcase(name, pattern):
                # a copy: an edit may change it in place, and others hold the same tensor
                edited = edit(tensor.clone())
                if not isinstance(edited, Tensor):
                    raise TraceError(
                        f"the edit of {name!r} returned {type(edited).__name__}; return a tensor"
                    )
                if edited.shape != tensor.shape or edited.dtype != tensor.dtype:
                    raise TraceError(
                        f"the edit of {name!r} was given {tuple(tensor.shape)} {tensor.dtype} and "
                        f"returned {tuple(edited.shape)} {edited.dtype}; return the same kind"
                    )
                tensor = edited
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in self._record):
            self._recorded[name] = tensor.detach()
        return tensor

    def check(self) -> None:
        """Called at the end of a pass: every name asked for must have been met.

        Raises:
            TraceError: A record or edit that matched nothing; lists the closest names.
        """
        for pattern in (*self._record, *self._edits):
            if not any(fnmatch.fnmatchcase(name, pattern) for name in self._seen):
                raise TraceError(
                    f"nothing in this model is called {pattern!r}; "
                    f"close to it: {', '.join(self._close_to(pattern)) or 'nothing'}"
                )

    def __getitem__(self, name: str) -> Tensor:
        """The recorded activation.

        Raises:
            TraceError: It was not recorded; lists the closest recorded names.
        """
        if name not in self._recorded:
            close = difflib.get_close_matches(name, self._recorded, n=3, cutoff=0.0)
            raise TraceError(
                f"{name!r} was not recorded; recorded: {', '.join(close) or 'nothing yet'}"
            )
        return self._recorded[name]

    def __contains__(self, name: str) -> bool:
        return name in self._recorded

    def names(self) -> tuple[str, ...]:
        """Names of all recorded activations, in the order of the pass."""
        return tuple(self._recorded)

    def _close_to(self, pattern: str) -> list[str]:
        return difflib.get_close_matches(pattern, sorted(self._seen), n=3, cutoff=0.0)


def tap(trace: Trace | None, name: str, tensor: Tensor) -> Tensor:
    """Show one named activation to the trace, if there is one; returns it, edited if asked."""
    return tensor if trace is None else trace.visit(name, tensor)
