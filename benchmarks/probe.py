"""Compare solvers of logistic regression over 15 folds x 8 penalties: scikit-learn, ours in blocks, and ours for many folds.

The output has CPU seconds on one core, all in one process, with the best score of each; scikit-learn and the solver for rows in
blocks fit some of the folds, and their times are scaled to all. The solver for many folds (`linear/logistic.py`) is kept while
it is three times as fast as scikit-learn's best. Run it alone:

    OMP_NUM_THREADS=1 python benchmarks/probe.py
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
import sklearn
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from cardiobench.protocols.linear.logistic import fold_logistic_path
from cardiobench.protocols.linear.model import fit_linear_models
from cardiobench.protocols.linear.path import SEARCH_TOLERANCE

FOLDS, PENALTIES = 15, 10.0 ** np.arange(4, -4, -1)
SHAPES = ((1000, 384), (2000, 768), (5000, 384), (5000, 1536), (1000, 1536))
LIMIT = 3
Folds = list[tuple[np.ndarray, np.ndarray]]


def embeddings(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors with a realistic spectrum, and labels that a linear layer predicts correctly in 7 of 10 cases."""
    rng = np.random.default_rng(seed)
    axes, _ = np.linalg.qr(rng.normal(size=(d, d)))
    features = (rng.normal(size=(n, d)) / np.sqrt(np.arange(1, d + 1))) @ axes.T
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    score = features @ rng.normal(size=d)
    return features, (score / score.std() + 0.8 * rng.normal(size=n) > 0).astype(int)


def many_folds(features: np.ndarray, labels: np.ndarray, folds: Folds) -> np.ndarray:
    """Return the accuracy of each fold and penalty, shape (folds, penalties), with all folds fitted in one call."""
    weights = np.ones((len(folds), len(labels)))
    for number, (_, held) in enumerate(folds):
        weights[number, held] = 0
    path = fold_logistic_path(features, labels, PENALTIES, folds=weights, tolerance=SEARCH_TOLERANCE)
    predicted = path.probabilities(features)[..., 1] > 0.5
    return np.array([(predicted[f][:, held] == labels[held]).mean(axis=1) for f, (_, held) in enumerate(folds)])


def blocks(features: np.ndarray, labels: np.ndarray, folds: Folds) -> np.ndarray:
    """Return the accuracies of the probe's solver, one fold at a time."""
    scores = []
    for train, held in folds:
        models = fit_linear_models(
            features, train, labels[train], list(PENALTIES), classes=2, tolerance=SEARCH_TOLERANCE
        )
        scores.append([(model.predict(features, held).argmax(axis=1) == labels[held]).mean() for model in models])
    return np.array(scores)


def peer(solver: str) -> Callable[[np.ndarray, np.ndarray, Folds], np.ndarray]:
    """Return the accuracies of one of scikit-learn's solvers in float32, in which it is faster."""

    def fit(features: np.ndarray, labels: np.ndarray, folds: Folds) -> np.ndarray:
        single, scores = features.astype(np.float32), []
        for train, held in folds:
            scores.append([])
            for penalty in PENALTIES:
                model = make_pipeline(StandardScaler(), LogisticRegression(C=1 / penalty, solver=solver, max_iter=1000))
                scores[-1].append(model.fit(single[train], labels[train]).score(single[held], labels[held]))
        return np.array(scores)

    return fit


def distances(features: np.ndarray, labels: np.ndarray) -> tuple[float, float, float]:
    """Return the mean distance of held-out probabilities from the minimum: scikit-learn, in blocks, many folds."""
    held = np.arange(len(labels)) % FOLDS == 0
    weights, train = (~held)[None].astype(float), np.flatnonzero(~held)

    def folds_at(tolerance: float) -> np.ndarray:
        path = fold_logistic_path(features, labels, PENALTIES, folds=weights, tolerance=tolerance)
        return path.probabilities(features[held])[0, :, :, 1]

    exact = folds_at(1e-13)
    single = features.astype(np.float32)
    theirs = [
        make_pipeline(StandardScaler(), LogisticRegression(C=1 / penalty, max_iter=1000))
        .fit(single[train], labels[train])
        .predict_proba(single[held])[:, 1]
        for penalty in PENALTIES
    ]
    models = fit_linear_models(features, train, labels[train], list(PENALTIES), classes=2, tolerance=SEARCH_TOLERANCE)
    ours = [expit(features[held] @ model.coefficients + model.intercepts)[:, 0] for model in models]
    gaps = (np.array(theirs), np.array(ours), folds_at(SEARCH_TOLERANCE))
    return tuple(float(np.abs(gap - exact).mean()) for gap in gaps)


def main() -> None:
    """Time every solver on every shape."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="number of shapes")
    parser.add_argument("--folds", type=int, default=2, help="folds, of 15, for all solvers except that for many folds")
    asked = parser.parse_args()
    solvers = {
        "lbfgs": peer("lbfgs"),
        "newton-cholesky": peer("newton-cholesky"),
        "in blocks": blocks,
        "many folds": many_folds,
    }
    print(
        f"numpy {np.__version__}, scikit-learn {sklearn.__version__}; {FOLDS} folds x {len(PENALTIES)} penalties; CPU seconds, one core\n"
    )
    header = "".join(f"{name:>17}" for name in solvers)
    print(f"{'n':>6}{'d':>6}{header}{'ratio':>8}{'limit':>6}   best score of each")
    for n, d in SHAPES[: asked.shapes]:
        features, labels = embeddings(n, d)
        folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(features, labels))
        seconds, scores = {}, {}
        for name, solve in solvers.items():
            some = folds if name == "many folds" else folds[: asked.folds]
            start = time.process_time()
            table = solve(features, labels, some)
            seconds[name] = (time.process_time() - start) * FOLDS / len(some)
            scores[name] = table[: asked.folds].mean(axis=0).max()
        ratio = min(seconds["lbfgs"], seconds["newton-cholesky"]) / seconds["many folds"]
        times = "".join(f"{value:17.2f}" for value in seconds.values())
        shown = " ".join(f"{value:.4f}" for value in scores.values())
        print(f"{n:6d}{d:6d}{times}{ratio:8.1f}{LIMIT:6d}   {shown}", flush=True)
    near = " ".join(f"{distance:.4f}" for distance in distances(*embeddings(*SHAPES[0])))
    print(f"\nmean distance of held-out probabilities to the minimum's (lbfgs, in blocks, many folds): {near}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        main()
