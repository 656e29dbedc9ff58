"""Compute the scores of a table in the paper's units, with bootstrap and rounding."""

import numpy as np

from cardiobench.core.config import RESAMPLES
from cardiobench.extensions.reproduction.profiles import Profile
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.bootstrap import percentile_interval, resample

DECIMALS = {"measurement": 2, "classification": 4, "view": 2}


def numbers(kind: str, sample: ScoringInput, weights: np.ndarray, profile: Profile) -> dict[str, np.ndarray]:
    """Compute every score of a table in each resample, in the unit of its column (percent if the name says so).

    Args:
        kind: Kind of table: measurement, classification or view.
        sample: Joined rows, n in total.
        weights: Multiplicity of each row, (b, n).
        profile: Evaluation profile; the published one rounds before any mean or quantile.

    Returns:
        Mapping from column to scores, (b,), in table order.
    """
    compute = {"measurement": _measurement, "classification": _classification, "view": _view}[kind]
    columns = compute(sample, weights, profile)
    if profile.as_published:
        return {column: np.round(values, DECIMALS[kind]) for column, values in columns.items()}
    return columns


def _measurement(sample: ScoringInput, weights: np.ndarray, profile: Profile) -> dict[str, np.ndarray]:
    report = load_metric("regression_report").resamples(sample, weights)
    mae = load_metric("mae").resamples(sample, weights)["mae"]
    mse = weights @ (sample.y_pred - sample.y_true) ** 2 / weights.sum(axis=1)
    if profile.as_published:
        width = _range_of_each(sample.y_true, weights)
        nmae = np.divide(mae, width, out=np.full_like(mae, np.nan), where=width > 0)
    else:
        nmae = report["nmae"]
    return {
        "MAE": mae,
        "NMAE(%)": nmae * 100,
        "MSE": mse,
        "RMSE": np.sqrt(mse),
        "R2(%)": report["r2"] * 100,
        "Pearson_r(%)": report["pearson"] * 100,
        "Spearman_rho(%)": report["spearman"] * 100,
    }


def _range_of_each(truth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the range of true values in each resample. The shape is (b,)."""
    rising = np.argsort(truth, kind="stable")
    drawn = weights.take(rising, axis=1) > 0
    last = len(truth) - 1 - drawn[:, ::-1].argmax(axis=1)
    return truth[rising[last]] - truth[rising[drawn.argmax(axis=1)]]


def _classification(sample: ScoringInput, weights: np.ndarray, profile: Profile) -> dict[str, np.ndarray]:
    return _hits(sample, weights, "F1(%)")[0]


def _view(sample: ScoringInput, weights: np.ndarray, profile: Profile) -> dict[str, np.ndarray]:
    columns, report = _hits(sample, weights, "F1_macro(%)")
    return columns | {
        "Brier_multiclass(%)": report["brier"] * 100,
        "NLL_multiclass(%)": report["nll"] * 100,
        "ECE_top1(%)": report["ece"] * 100,
    }


def _hits(
    sample: ScoringInput, weights: np.ndarray, f1_column: str
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the three columns shared by both kinds of classification, and the full report."""
    classification = load_metric("classification_report")
    assert classification.compute_resamples is not None, "the report of classification has weighted formulas"
    report = classification.compute_resamples(**classification.inputs(sample), weights=weights, areas=False)
    columns = {
        "Accuracy(%)": report["accuracy"] * 100,
        "Balanced_Accuracy(%)": report["balanced_accuracy"] * 100,
        f1_column: load_metric("f1_macro").resamples(sample, weights)["f1_macro"] * 100,
    }
    return columns, report


def point(kind: str, sample: ScoringInput, profile: Profile) -> dict[str, float]:
    """Compute scores without resampling."""
    once = np.ones((1, len(sample)))
    return {column: float(values[0]) for column, values in numbers(kind, sample, once, profile).items()}


def summary(
    kind: str, sample: ScoringInput, patients: np.ndarray, profile: Profile, resamples: int = RESAMPLES
) -> dict[str, float]:
    """Compute scores with resample mean and 95 % interval, as table columns.

    Args:
        kind: Kind of table: measurement, classification or view.
        sample: Joined rows, n in total.
        patients: Patient of each row, (n,); ignored by the published profile, which resamples rows.
        profile: Evaluation profile.
        resamples: Number of bootstrap resamples.
    """
    units = [f"{row:09d}" for row in range(len(sample))] if profile.as_published else list(patients)
    drawn = resample(lambda weights: numbers(kind, sample, weights, profile), units, resamples, profile.seed)
    columns: dict[str, float] = {}
    for column, value in point(kind, sample, profile).items():
        mean, low, high = _mean_and_interval(drawn[column], profile, len(set(units)))
        if profile.as_published:
            mean, low, high = (round(number, DECIMALS[kind]) for number in (mean, low, high))
        columns |= {column: value, f"{column}_mean": mean, f"{column}_ci_lo": low, f"{column}_ci_hi": high}
    return columns


def _mean_and_interval(values: np.ndarray, profile: Profile, units: int) -> tuple[float, float, float]:
    if profile.as_published:  # In the published profile, an undefined resample makes all three values undefined.
        return float(np.mean(values)), float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975))
    defined = values[~np.isnan(values)]
    if units < 2 or not len(defined):
        return np.nan, np.nan, np.nan
    return float(np.mean(defined)), *percentile_interval(values)
