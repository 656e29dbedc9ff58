"""Logistic regression over 15 folds x 8 penalties: one scikit-learn fit for each, as GridSearchCV does, against one call.

Prints the ratio of CPU times on one core, both sides in one process, with the scores of both. Run it alone:

    OMP_NUM_THREADS=1 python benchmarks/probe.py
"""

import argparse
import time
import warnings

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from cardiobench.protocols.linear.logistic import SEARCH_TOLERANCE, logistic_path

FOLDS, PENALTIES = 15, 10.0 ** np.arange(4, -4, -1)
SHAPES = ((1000, 384), (2000, 768), (5000, 384), (5000, 1536), (1000, 1536))
GOAL = 8


def embeddings(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors with a spectrum that falls like a network's, and labels that a linear layer gets right for 7 of 10."""
    rng = np.random.default_rng(seed)
    axes, _ = np.linalg.qr(rng.normal(size=(d, d)))
    features = (rng.normal(size=(n, d)) / np.sqrt(np.arange(1, d + 1))) @ axes.T
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    score = features @ rng.normal(size=d)
    return features, (score / score.std() + 0.8 * rng.normal(size=n) > 0).astype(int)


def ours(features: np.ndarray, labels: np.ndarray, folds) -> np.ndarray:
    """Accuracy a penalty, mean over folds."""
    weights = np.ones((len(folds), len(labels)))
    for number, (_, held) in enumerate(folds):
        weights[number, held] = 0
    path = logistic_path(features, labels, PENALTIES, folds=weights, tolerance=SEARCH_TOLERANCE)
    answers = path.probabilities(features)[..., 1] > 0.5
    return np.mean([(answers[f][:, held] == labels[held]).mean(axis=1) for f, (_, held) in enumerate(folds)], axis=0)


def peer(features: np.ndarray, labels: np.ndarray, folds) -> np.ndarray:
    """The same by scikit-learn, in float32, which is the faster for it."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    grid = {"logisticregression__C": 1 / PENALTIES}
    search = GridSearchCV(model, grid, cv=folds, refit=False).fit(features.astype(np.float32), labels)
    return search.cv_results_["mean_test_score"]


def distances(features: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Mean distance of the probabilities to those at the minimum, on lines held out: the peer's and ours, over all penalties."""
    learned = np.ones((1, len(labels)))
    learned[0, ::FOLDS] = 0
    known, asked = learned[0] > 0, learned[0] == 0

    def own(tolerance: float) -> np.ndarray:
        path = logistic_path(features, labels, PENALTIES, folds=learned, tolerance=tolerance)
        return path.probabilities(features[asked])[0, :, :, 1]

    exact = own(1e-13)
    peers = [
        make_pipeline(StandardScaler(), LogisticRegression(C=1 / penalty, max_iter=1000))
        .fit(features[known].astype(np.float32), labels[known])
        .predict_proba(features[asked].astype(np.float32))[:, 1]
        for penalty in PENALTIES
    ]
    return float(np.abs(peers - exact).mean()), float(np.abs(own(SEARCH_TOLERANCE) - exact).mean())


def timed(work, *arguments) -> tuple[float, np.ndarray]:
    start = time.process_time()
    found = work(*arguments)
    return time.process_time() - start, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="how many of the shapes")
    shapes = SHAPES[: parser.parse_args().shapes]
    print(
        f"numpy {np.__version__}, scikit-learn {sklearn.__version__}; {FOLDS} folds x {len(PENALTIES)} penalties; CPU seconds, one core\n"
    )
    print(
        f"{'n':>6}{'d':>6}{'peer s':>9}{'ours s':>9}{'ratio':>8}{'goal':>6}   best score of the peer, ours, difference"
    )
    for n, d in shapes:
        features, labels = embeddings(n, d)
        folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(features, labels))
        fast, own = timed(ours, features, labels, folds)
        slow, theirs = timed(peer, features, labels, folds)
        gap = own.max() - theirs.max()
        print(
            f"{n:6d}{d:6d}{slow:9.1f}{fast:9.2f}{slow / fast:8.1f}{GOAL:6d}   {theirs.max():.4f} {own.max():.4f} {gap:+.4f}",
            flush=True,
        )
    near = distances(*embeddings(*SHAPES[0]))
    print(f"\nmean distance of held-out probabilities to the minimum's: {near[0]:.4f} {near[1]:.4f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        main()
