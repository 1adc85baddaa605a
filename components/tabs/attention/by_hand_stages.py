"""The stages of the panel "by hand": what each shows, its formula and the line of PyTorch."""

from collections.abc import Mapping
from dataclasses import dataclass

from explorer.attention_lab.by_hand import WORDS

WORD_ROWS = tuple(f"{i + 1} {word}" for i, word in enumerate(WORDS))


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step.

    Args:
        key: Of its words, `attention.hand.stage.<key>` and `attention.hand.said.<key>`.
        show: Matrices, in order; those in `fixed` cannot be changed.
        formula: KaTeX.
        torch_line: The matching PyTorch.
        guess: The matrix whose row is hidden with "predict first", or None.
        fixed: Matrices that are shown but not changed here.
    """

    key: str
    show: tuple[str, ...]
    formula: str
    torch_line: str
    guess: str | None = None
    fixed: tuple[str, ...] = ()


STAGES = (
    Stage(
        key="inputs",
        show=("inputs",),
        formula=r"$$x^{(1)},\dots,x^{(6)} \in \mathbb{R}^3$$",
        torch_line="x = torch.tensor([[0.43, 0.15, 0.89], ...])",
    ),
    Stage(
        key="scores",
        show=("inputs", "scores"),
        formula=r"$$s_{ij} = x^{(i)} \cdot x^{(j)} \qquad S = X X^{\top}$$",
        torch_line="scores = x @ x.T          # one query: x @ x[1]",
    ),
    Stage(
        key="by_sum",
        show=("scores", "by_sum"),
        formula=r"$$a_{ij} = \frac{s_{ij}}{\sum_k s_{ik}}$$",
        torch_line="weights = scores / scores.sum(dim=-1, keepdim=True)",
        guess="by_sum",
    ),
    Stage(
        key="naive",
        show=("scores", "naive", "stable"),
        formula=r"$$\frac{e^{s_j}}{\sum_k e^{s_k}} \;=\; "
        r"\frac{e^{s_j - \max s}}{\sum_k e^{s_k - \max s}}$$",
        torch_line="naive = torch.exp(s) / torch.exp(s).sum(dim=-1, keepdim=True)\n"
        "stable = torch.softmax(s, dim=-1)",
    ),
    Stage(
        key="softmax",
        show=("scores", "softmax"),
        formula=r"$$a_{ij} = \frac{e^{s_{ij}}}{\sum_k e^{s_{ik}}}$$",
        torch_line="weights = torch.softmax(scores, dim=-1)",
        guess="softmax",
    ),
    Stage(
        key="context",
        show=("softmax", "inputs", "context"),
        formula=r"$$z^{(i)} = \sum_j a_{ij}\, x^{(j)}$$",
        torch_line="context = weights @ x",
    ),
    Stage(
        key="qkv",
        show=("w_q", "w_k", "w_v", "q", "k", "v"),
        formula=r"$$Q = X W_q \qquad K = X W_k \qquad V = X W_v$$",
        torch_line="q, k, v = W_q(x), W_k(x), W_v(x)   # nn.Linear(3, 2, bias=False)",
    ),
    Stage(
        key="scaled",
        show=("qk", "scaled", "weights"),
        formula=r"$$A = \mathrm{softmax}\!\left(\frac{Q K^{\top}}{\sqrt{d_k}}\right)$$",
        torch_line="weights = torch.softmax(q @ k.T / k.shape[-1] ** 0.5, dim=-1)",
        guess="weights",
    ),
    Stage(
        key="sharpness",
        show=("sharpness",),
        formula=r"$$\mathrm{Var}(q \cdot k) = d \;\Rightarrow\; "
        r"\mathrm{Var}\!\left(\frac{q \cdot k}{\sqrt d}\right) = 1$$",
        torch_line="(q @ k.T / d ** 0.5).softmax(-1).amax(-1).mean()",
        fixed=("sharpness",),
    ),
    Stage(
        key="contexts",
        show=("weights", "v", "contexts"),
        formula=r"$$Z = A V$$",
        torch_line="context = weights @ v",
    ),
    Stage(
        key="masked",
        show=("scaled", "masked", "causal"),
        formula=r"$$\tilde s_{ij} = \begin{cases} s_{ij} & j \le i \\ -\infty & j > i \end{cases}"
        r"\qquad A = \mathrm{softmax}(\tilde S)$$",
        torch_line="future = torch.ones(6, 6, dtype=torch.bool).triu(1)\n"
        "weights = scores.masked_fill(future, -torch.inf).softmax(-1)",
        guess="causal",
    ),
    Stage(
        key="renormalised",
        show=("weights", "cut", "renormalised", "causal"),
        formula=r"$$\frac{a_{ij}\,[j \le i]}{\sum_k a_{ik}\,[k \le i]}$$",
        torch_line="cut = weights.tril()\nweights = cut / cut.sum(dim=-1, keepdim=True)",
    ),
    Stage(
        key="dropout",
        show=("keep", "causal", "dropped"),
        formula=r"$$\tilde a_{ij} = \frac{m_{ij}}{1-p}\, a_{ij}, \qquad "
        r"m_{ij} \sim \mathrm{Bernoulli}(1-p)$$",
        torch_line="weights = nn.Dropout(p)(weights)   # only while training",
    ),
    Stage(
        key="causal_contexts",
        show=("causal", "v", "causal_contexts"),
        formula=r"$$Z = A_{\text{causal}} V$$",
        torch_line="context = F.scaled_dot_product_attention(q, k, v, is_causal=True)",
    ),
    Stage(
        key="heads",
        show=("heads_one", "heads_two", "heads_side_by_side"),
        formula=r"$$\mathrm{heads}(X) = [Z_1 \;\; Z_2]$$",
        torch_line="context = torch.cat([head(x) for head in heads], dim=-1)",
    ),
    Stage(
        key="split",
        show=("heads_joined", "w_o", "heads_split"),
        formula=r"$$\mathrm{MHA}(X) = \mathrm{concat}(Z_1, \dots, Z_H)\, W_o + b$$",
        torch_line="# z: (heads, words, d / heads)\n"
        "context = out_proj(z.transpose(0, 1).flatten(1))",
    ),
)

# What stands above the matrices: symbols, the same in every language.
TITLES: Mapping[str, str] = {
    "inputs": "X",
    "scores": "S = X Xᵀ",
    "by_sum": "S / Σ",
    "naive": "exp(g S) / Σ",
    "stable": "softmax(g S)",
    "softmax": "A = softmax(S)",
    "context": "Z = A X",
    "w_q": "W_q",
    "w_k": "W_k",
    "w_v": "W_v",
    "q": "Q",
    "k": "K",
    "v": "V",
    "qk": "Q Kᵀ",
    "scaled": "Q Kᵀ / √d",
    "weights": "A = softmax(Q Kᵀ / √d)",
    "contexts": "Z = A V",
    "masked": "Q Kᵀ / √d, j ≤ i",
    "causal": "A, j ≤ i",
    "cut": "A · [j ≤ i]",
    "renormalised": "A · [j ≤ i] / Σ",
    "keep": "m / (1 − p)",
    "dropped": "A · m / (1 − p)",
    "causal_contexts": "Z = A V, j ≤ i",
    "dropped_contexts": "Z, dropout",
    "heads_one": "Z₁",
    "heads_two": "Z₂",
    "heads_side_by_side": "[Z₁ Z₂]",
    "heads_joined": "Z = concat(Z₁, Z₂)",
    "w_o": "W_o",
    "heads_split": "Z W_o + b",
}
# Matrices of attention weights: coloured, on the scale that weights have everywhere.
WEIGHTS = (
    "by_sum",
    "naive",
    "stable",
    "softmax",
    "weights",
    "causal",
    "cut",
    "renormalised",
    "dropped",
)


def labels_of(name: str, shape: tuple[int, ...]) -> tuple[list[str], list[str]]:
    """Names of the rows and columns of a matrix: words where there are six, else numbers."""
    n_rows, n_columns = shape
    rows = list(WORD_ROWS) if n_rows == len(WORDS) else [str(i + 1) for i in range(n_rows)]
    square = n_rows == n_columns == len(WORDS)
    return rows, list(WORDS) if square else [f"d{i + 1}" for i in range(n_columns)]
