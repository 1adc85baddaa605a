"""Python that gives the numbers of the panels "one pass" and "weights"."""

from explorer.snippets import make_snippet, say_call, say_load
from explorer.weights import WeightSettings, compute_weight_view


def make_weights_snippet(source: str, settings: WeightSettings) -> str:
    """Python that lists the tensors found, and prints the singular values of the one looked at."""
    return make_snippet(
        (WeightSettings, compute_weight_view),
        "from models import load_model",
        "",
        f"loaded = {say_load(source)}",
        f"found = {compute_weight_view.__name__}(loaded, {say_call(settings)})",
        "for tensor in found.listed:",
        "    print(tensor.name, tensor.shape, tensor.norm, tensor.mean, tensor.std)",
        "print(found.chosen.name, found.singular_values[:10], found.int8_error)",
    )
