"""From the similarity of a picture to a ladder of numeric prompts, to a number: the two published rules."""

import numpy as np


def ranked(similarities: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Numbers of the prompts from the likest to the least like, for each part: (P, prompts); ties keep the ladder's order."""
    return numbers[np.argsort(-similarities, axis=1, kind="stable")]


def per_frame_median(similarities: np.ndarray, numbers: np.ndarray, share: float = 0.2) -> float:
    """Mean over parts of the median number among each part's likest prompts (arXiv:2510.00520, its released code).

    Args:
        similarities: (P, prompts), cosine of each part to each prompt.
        numbers: (prompts,), the number in each prompt.
        share: of the prompts that count as likest; their count is rounded down.

    Returns:
        A number of the ladder's unit. The median of an even count is the lower of the middle two.
    """
    best = np.sort(ranked(similarities, numbers)[:, : max(int(share * len(numbers)), 1)], axis=1)
    return float(best[:, (best.shape[1] - 1) // 2].mean())


def rank_mean_median(similarities: np.ndarray, numbers: np.ndarray, share: float = 0.2) -> float:
    """Median over the likest ranks of the number at each rank, averaged over parts (EchoCLIP, Christensen et al. 2024).

    Args and return value as of `per_frame_median`; the median of an even count is the lower of the middle two, as there.
    """
    by_rank = ranked(similarities, numbers).mean(axis=0)
    best = np.sort(by_rank[: max(int(share * len(numbers)), 1)])
    return float(best[(len(best) - 1) // 2])


RULES = {"per_frame_median": per_frame_median, "rank_mean_median": rank_mean_median}
