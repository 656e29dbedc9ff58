"""Pool the tokens of a network into one vector per part, or keep one vector per token."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

KEEP_TOKENS = "tokens"
# Name -> description of the pooling.
POOLINGS = {
    "mean": "mean of all tokens",
    "cls": "first token",
    "last": "last token",
    "max": "maximum of every component over the tokens",
    KEEP_TOKENS: "every token, as a separate vector",
}


def pool(tokens: "torch.Tensor", how: str) -> "torch.Tensor":
    """Pool each row of tokens to one vector, or keep them all.

    Args:
        tokens: Tokens, (N, T, D), T >= 1.
        how: Name in `POOLINGS`.

    Returns:
        Vectors, (N, D), or (N, T, D) if tokens are kept.

    Raises:
        ValueError: The name is unknown, or the tokens have an unexpected shape.
    """
    if tokens.ndim != 3 or not tokens.shape[1]:
        raise ValueError(f"tokens of shape {tuple(tokens.shape)}: expected (N, T, D) with T >= 1")
    if how == "mean":
        return tokens.mean(dim=1)
    if how == "cls":
        return tokens[:, 0]
    if how == "last":
        return tokens[:, -1]
    if how == KEEP_TOKENS:
        return tokens
    if how == "max":
        return tokens.amax(dim=1)
    raise ValueError(f"pooling '{how}': expected one of {', '.join(POOLINGS)}")
