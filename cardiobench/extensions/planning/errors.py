"""Expected standard errors of scores for n patients with one recording each, from closed forms."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import scipy

from cardiobench.core.errors import BadConfig
from cardiobench.metrics.load import load_formula
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.influence import row_influence

StandardError = Callable[[float], float]
"""Function of the number of patients."""
ROWS = 10_000
"""Number of rows of the expected confusion table."""
CLOSED = ("f1_macro", "auroc", "auroc_macro", "accuracy", "sensitivity", "specificity", "mae")
"""Numbers with a closed form, that of regressions last."""


def closed_form(metric: str, score: float, shares: Sequence[float]) -> StandardError:
    """Return the standard error of a score.

    Args:
        metric: Key of the number, one of `CLOSED`.
        score: Expected score.
        shares: Share of each class, (K,); the last of two is the positive class. Not used for a mean error.

    Raises:
        BadConfig: The metric has no closed form, or the score is outside its range.
    """
    if metric not in CLOSED:
        raise BadConfig(
            f"{metric} has no closed form for the number of patients. Give results of a pilot study with --results."
        )
    if metric == "mae":
        if not score > 0:
            raise BadConfig(f"--score {score:g}: a mean absolute error is above 0.")
        # Absolute values of normal errors: their variance is (pi / 2 - 1) times the square of their mean.
        return _of_variance((math.pi / 2 - 1) * score**2)
    if not 0 < score < 1:
        raise BadConfig(f"--score {score:g}: {metric} lies between 0 and 1. Give a fraction such as 0.85.")
    if metric.startswith("auroc"):
        return lambda n: auroc_se(score, shares[-1], n)
    if metric == "f1_macro":
        return _of_variance(f1_variance(score, shares))
    part = {"accuracy": 1.0, "sensitivity": shares[-1], "specificity": 1 - shares[-1]}[metric]
    return _of_variance(score * (1 - score) / part)


def _of_variance(variance: float) -> StandardError:
    return lambda n: math.sqrt(variance / n)


def auroc_se(auroc: float, prevalence: float, n: float) -> float:
    """Compute the standard error of an AUROC (Newcombe, Statistics in Medicine 25, 2006, method 4; Riley et al. 2021)."""
    half = n / 2 - 1
    spread = 1 + half * (1 - auroc) / (2 - auroc) + half * auroc / (1 + auroc)
    return math.sqrt(auroc * (1 - auroc) * spread / (n**2 * prevalence * (1 - prevalence)))


def f1_variance(score: float, shares: Sequence[float]) -> float:
    """Compute the variance of the macro F1 times the number of patients, by the delta method.

    All classes are recognised equally often, and wrong answers are spread evenly over the other classes.

    Raises:
        BadConfig: Such answers cannot have this score.
    """
    from_tables = load_formula("f1_macro").from_tables
    present = np.ones(len(shares), dtype=bool)

    def table(right: float) -> np.ndarray:
        wrong = (1 - right) / (len(shares) - 1)
        return np.asarray(shares)[:, None] * np.where(np.eye(len(shares), dtype=bool), right, wrong)

    def score_of(right: float) -> float:
        return float(np.ravel(from_tables(table(right)[None], present)["f1_macro"])[0])

    least, most = score_of(1 / len(shares)), 1.0
    if not least < score < most:
        raise BadConfig(
            f"--score {score:g}: answers by chance reach a macro F1 of {least:.3f} with these classes. Give a fraction "
            "between the two and 1."
        )
    right = scipy.optimize.brentq(lambda x: score_of(x) - score, 1 / len(shares), 1 - 1e-12)
    counts = np.round(ROWS * table(right)).astype(int)
    truth, answer = np.indices(counts.shape).reshape(2, -1)
    sample = ScoringInput(np.repeat(truth, counts.ravel()), np.repeat(answer, counts.ravel()))
    influence = row_influence(from_tables, "f1_macro", sample, present)
    return float((influence**2).sum() * len(sample))
