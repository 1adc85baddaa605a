"""Mixture of experts: many feed-forwards, of which each token uses a few.

    x ─► router ─► softmax over E experts ─► the k most probable, with their weights
     └─► expert a ─► · w_a ─┐
     └─► expert b ─► · w_b ─┴─► sum

Shazeer et al. 2017 (arXiv 1701.06538), section 2; as in Qwen3 (arXiv 2505.09388) the softmax comes
before the choice, and the weights of the chosen may be divided by their sum.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from models.config import FfnConfig, MoeConfig
from models.ffn import FeedForward
from models.forward_pass import ForwardPass
from models.trace import tap


class MixtureOfExperts(nn.Module):
    """A router and its experts, in the place of one feed-forward."""

    def __init__(self, config: MoeConfig, expert: FfnConfig, *, d_model: int) -> None:
        super().__init__()
        self.config = config
        self.router = nn.Linear(d_model, config.n_experts, bias=False)
        self.experts = nn.ModuleList(
            FeedForward(expert, d_model=d_model) for _ in range(config.n_experts)
        )

    def forward(
        self, x: Float[Tensor, "B T D"], *, name: str, run: ForwardPass
    ) -> Float[Tensor, "B T D"]:
        """The weighted sum of what the chosen experts of each token say.

        Args:
            x: The normalised stream.
            name: Of this layer in the trace, `blocks.L.ffn`; the router's taps stand beside it.
            run: The trace of this pass.
        """
        router = name.removesuffix("ffn") + "router"
        logits = tap(run.trace, f"{router}.logits", self.router(x))
        weights, ids = logits.softmax(dim=-1, dtype=torch.float32).topk(self.config.n_active)
        if self.config.normalise_weights:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        weights = tap(run.trace, f"{router}.weights", weights.to(x.dtype))
        ids = tap(run.trace, f"{router}.ids", ids)
        total = torch.zeros_like(x)
        for expert in ids.unique().tolist():  # only the experts that some token has chosen
            rows, columns, place = torch.nonzero(ids == expert, as_tuple=True)
            said = self.experts[expert](
                x[rows, columns][None], name=f"{name}.experts.{expert}", run=run
            )
            total.index_put_(
                (rows, columns), said[0] * weights[rows, columns, place, None], accumulate=True
            )
        return total
