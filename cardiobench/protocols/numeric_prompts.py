"""Decoding of a number from the similarities of a recording to numeric prompts, by two published rules."""

import numpy as np


def rank_values(similarities: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return the prompts' numbers by decreasing similarity for each part.

    The shape is (P, prompts); ties keep the grid's order.
    """
    return numbers[np.argsort(-similarities, axis=1, kind="stable")]


def per_frame_median(similarities: np.ndarray, numbers: np.ndarray, top_fraction: float = 0.2) -> float:
    """Average over parts the median number of each part's most similar prompts (arXiv:2510.00520, its released code).

    Args:
        similarities: Cosine of each part to each prompt, shape (P, prompts).
        numbers: Number in each prompt, shape (prompts,).
        top_fraction: Fraction of the prompts to use, rounded down.

    Returns:
        The number in the unit of the grid. The median of an even count is the lower of the middle two.
    """
    best = np.sort(rank_values(similarities, numbers)[:, : max(int(top_fraction * len(numbers)), 1)], axis=1)
    return float(best[:, (best.shape[1] - 1) // 2].mean())


def rank_mean_median(similarities: np.ndarray, numbers: np.ndarray, top_fraction: float = 0.2) -> float:
    """Take the median over the top ranks of the number at each rank averaged over parts (EchoCLIP, Christensen et al. 2024).

    Arguments and result as in `per_frame_median`; the median of an even count is the lower of the middle two, as there.
    """
    by_rank = rank_values(similarities, numbers).mean(axis=0)
    best = np.sort(by_rank[: max(int(top_fraction * len(numbers)), 1)])
    return float(best[(len(best) - 1) // 2])


RULES = {"per_frame_median": per_frame_median, "rank_mean_median": rank_mean_median}
