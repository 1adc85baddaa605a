"""The feed-forward layer: where each token is worked on by itself.

    plain   down(act(up(x)))                    GPT-2, with GELU
    gated   down(act(gate(x)) * up(x))          Llama, with SiLU: SwiGLU (Shazeer 2020, eq. 6)

GELU exact is x Φ(x); GPT-2 was trained with the tanh approximation (Hendrycks & Gimpel 2016,
section 2), which differs in the fourth digit: enough to change logits.
"""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from models.config import Activation, FfnConfig
from models.forward_pass import ForwardPass
from models.trace import tap


def activation_function(name: Activation) -> Callable[[Tensor], Tensor]:
    """The nonlinearity of that name."""
    if name == "silu":
        return functional.silu
    if name == "relu":
        return functional.relu
    approximate = "tanh" if name == "gelu_tanh" else "none"
    return lambda x: functional.gelu(x, approximate=approximate)


class FeedForward(nn.Module):
    """Widen, apply a nonlinearity, narrow again."""

    def __init__(self, config: FfnConfig, *, d_model: int) -> None:
        super().__init__()
        self.activation = activation_function(config.activation)
        self.gated = config.gated
        if config.gated:
            self.gate_proj = nn.Linear(d_model, config.d_ff, bias=config.bias)
        self.up_proj = nn.Linear(d_model, config.d_ff, bias=config.bias)
        self.down_proj = nn.Linear(config.d_ff, d_model, bias=config.bias)

    def forward(
        self, x: Float[Tensor, "B T D"], *, name: str, run: ForwardPass
    ) -> Float[Tensor, "B T D"]:
        """Work on each token.

        Args:
            x: The normalised stream.
            name: Of this layer in the trace; its `.pre` and `.post` are what enters the activation
                and what enters the down projection.
            run: The trace of this pass.
        """
        pre = tap(run.trace, f"{name}.pre", self.gate_proj(x) if self.gated else self.up_proj(x))
        post = self.activation(pre)
        if self.gated:
            post = post * self.up_proj(x)
        return self.down_proj(tap(run.trace, f"{name}.post", post))
