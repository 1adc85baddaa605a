"""Python that gives the numbers of the architecture explorer."""

from explorer.architecture_choices import ArchitectureSettings, describe_chosen
from explorer.architecture_costs import compute_any_costs
from explorer.snippets import make_snippet, say_call


def make_architecture_snippet(settings: ArchitectureSettings) -> str:
    """Python that prints parameters and costs of the models that were chosen."""
    return make_snippet(
        (ArchitectureSettings, compute_any_costs, describe_chosen),
        "",
        f"settings = {say_call(settings)}",
        f"for model in {describe_chosen.__name__}(settings):",
        "    print(model.name, model.count.unique, dict(model.count.parts))",
        f"    print({compute_any_costs.__name__}(model.config, settings.n_tokens, settings.batch))",
    )
