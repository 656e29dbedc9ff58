"""Compare the grid of five classifiers, SHAP and the representation metrics with standard implementations: CPU time on one core.

The peer fits every point of the grid in every fold (GridSearchCV, refit off), with the same grids, folds and embeddings, in
float32 where that is faster. Run it alone:

    OMP_NUM_THREADS=1 python benchmarks/probing.py                 # all parts, 3 folds of 15
    OMP_NUM_THREADS=1 python benchmarks/probing.py --parts grid --folds 15

The output has for each classifier the ratio (for XGBoost also with the library's default of 256 bins), and the paired difference
of the best score over folds with its 95 % interval; then SHAP and the representation metrics.
"""

import argparse
import time
import warnings
from collections.abc import Sequence
from importlib.metadata import version

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NearestNeighbors
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from cardiobench.extensions.representation.geometry import geometry
from cardiobench.extensions.representation.shap_values import importance
from cardiobench.protocols import maps
from cardiobench.protocols.grid_search.classifiers import CLASSIFIERS, classifier
from cardiobench.protocols.grid_search.folds import balanced_folds
from cardiobench.protocols.grid_search.grids import FIXED, GRIDS, param_grid
from cardiobench.protocols.grid_search.search import f1

LIMITS = {"all five": 3.5, "all five, 256 bins": 2.0, "logistic": 8.0, "shap": 1.0, "representation": 1.5}
PARTS = ("grid", "shap", "representation")


def embeddings(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors with a realistic spectrum, and labels from a linear and a product term with noise."""
    rng = np.random.default_rng(seed)
    axes, _ = np.linalg.qr(rng.normal(size=(d, d)))
    features = (rng.normal(size=(n, d)) / np.sqrt(np.arange(1, d + 1))) @ axes.T
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    straight, one, two = (features @ rng.normal(size=d) for _ in range(3))
    score = straight / straight.std() + 0.5 * (one / one.std()) * (two / two.std()) + 0.6 * rng.normal(size=n)
    return features, (score > np.median(score)).astype(int)


def peer_of(name: str, bins: int):
    """Return the library's classifier and its grid in the form for GridSearchCV."""
    grid = {key: list(values) for key, values in GRIDS[name].items()}
    if name == "xgboost":
        from xgboost import XGBClassifier

        rate = FIXED[name]["learning_rate"]
        return XGBClassifier(tree_method="hist", max_bin=bins, learning_rate=rate, n_jobs=1, random_state=0), grid
    if name == "tree":
        return DecisionTreeClassifier(random_state=0), grid
    if name == "forest":
        return RandomForestClassifier(random_state=0, n_jobs=1), grid
    if name == "logistic":
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        return model, {"logisticregression__C": grid["C"]}
    fixed = FIXED["mlp"]
    model = MLPClassifier(
        fixed["hidden"],
        max_iter=fixed["epochs"],
        n_iter_no_change=fixed["patience"],
        tol=fixed["tolerance"],
        random_state=0,
    )
    names = {"alpha": "mlpclassifier__alpha", "learning_rate": "mlpclassifier__learning_rate_init"}
    return make_pipeline(StandardScaler(), model), {names[key]: values for key, values in grid.items()}


def peer(name: str, features, labels, folds, bins: int = 256) -> np.ndarray:
    """Return the F1 of every fold and grid point. The shape is (folds, points)."""
    model, grid = peer_of(name, bins)
    search = GridSearchCV(model, grid, cv=folds, scoring="f1", refit=False).fit(features.astype(np.float32), labels)
    return np.stack([search.cv_results_[f"split{fold}_test_score"] for fold in range(len(folds))])


def ours(name: str, features, labels, folds) -> np.ndarray:
    """Return the F1 of our implementation, with all grid points in one call."""
    found = classifier(name).predict_proba_grid(features, labels, folds, param_grid(GRIDS[name]), 0)
    return np.array(
        [[f1(labels[held], table) for table in answers] for (_, held), answers in zip(folds, found, strict=True)]
    )


def timed(work, *arguments, **options):
    """Return CPU seconds and the result."""
    start = time.process_time()
    found = work(*arguments, **options)
    return time.process_time() - start, found


def difference(own: np.ndarray, theirs: np.ndarray) -> str:
    """Describe the best point's F1, ours minus the peer's: mean over folds and 95 % interval."""
    gaps = own[:, own.mean(axis=0).argmax()] - theirs[:, theirs.mean(axis=0).argmax()]
    half = 1.96 * gaps.std(ddof=1) / np.sqrt(len(gaps))
    return f"{own.mean(axis=0).max():.4f} - {theirs.mean(axis=0).max():.4f} = {gaps.mean():+.4f} +- {half:.4f}"


def all_bins(features, labels, folds) -> float:
    """Return CPU seconds of our XGBoost with the library's default of 256 bins."""
    settings = classifier("xgboost").SETTINGS
    settings["max_bin"], own = 256, settings["max_bin"]
    seconds, _ = timed(ours, "xgboost", features, labels, folds)
    settings["max_bin"] = own
    return seconds


def grid_part(n: int, d: int, count: int, repeats: int, names: Sequence[str]) -> float:
    """Print the ratio of each classifier; return our CPU seconds per fold."""
    slow, fast, fast_all_bins = (dict.fromkeys(names, 0.0) for _ in range(3))
    own, theirs = ({name: [] for name in names} for _ in range(2))
    for repeat in range(repeats):
        features, labels = embeddings(n, d, repeat)
        every = balanced_folds(labels, np.arange(n), 15, repeat)
        for name in names:
            # Logistic regression fits all folds together, so always request all of them.
            folds = every if name == "logistic" else every[:count]
            share = 1 / (len(folds) * repeats)
            seconds, found = timed(ours, name, features, labels, folds)
            slower, reference = timed(peer, name, features, labels, folds)
            fast[name] += share * seconds
            slow[name] += share * slower
            own[name].append(found)
            theirs[name].append(reference)
            other = all_bins(features, labels, folds) if name == "xgboost" else seconds
            fast_all_bins[name] += share * other
    print(
        f"{'classifier':<22}{'peer s':>9}{'ours s':>9}{'ratio':>8}{'limit':>6}   s per fold; F1 of the best point: ours - peer's"
    )
    rows = [
        (name, slow[name], fast[name], difference(np.concatenate(own[name]), np.concatenate(theirs[name])))
        for name in names
    ]
    if len(names) == len(CLASSIFIERS):
        rows.append(("all five", sum(slow.values()), sum(fast.values()), ""))
        rows.append(
            ("all five, 256 bins", sum(slow.values()), sum(fast_all_bins.values()), "XGBoost with its own bins")
        )
    for name, before, after, note in rows:
        print(f"{name:<22}{before:9.2f}{after:9.2f}{before / after:8.1f}{LIMITS.get(name, ''):>6}   {note}", flush=True)
    return sum(fast.values())


def shap_part(n: int, d: int, fold_seconds: float | None) -> None:
    """Print the CPU seconds of SHAP for 200 records with each classifier."""
    features, labels = embeddings(n, d)
    print("\nSHAP of 200 records, CPU s" + (f" (one fold's grid: {fold_seconds:.1f} s)" if fold_seconds else ""))
    for name in CLASSIFIERS:
        model = classifier(name).fit(features, labels, param_grid(GRIDS[name])[-1], 0)
        importance(model, features[:2], features)  # Warm up imports and compilation.
        seconds, _ = timed(importance, model, features[:200], features)
        print(f"{name:<22}{seconds:9.2f}", flush=True)


def usual_representation(vectors: np.ndarray, groups: np.ndarray) -> None:
    """Compute neighbours, centroids, clusters, silhouette and the maps with separate library calls."""
    import umap

    found = NearestNeighbors(n_neighbors=11).fit(vectors).kneighbors(vectors, return_distance=False)[:, 1:]
    (groups[found] == groups[:, None]).mean()
    centres = [vectors[groups == code].mean(axis=0) for code in np.unique(groups)]
    np.linalg.norm(centres[0] - centres[1])
    clusters = GaussianMixture(len(centres), covariance_type="diag", n_init=10, random_state=42).fit_predict(vectors)
    adjusted_rand_score(groups, clusters)
    silhouette_score(vectors, groups)
    for neighbours, spread in maps.SETTINGS:
        umap.UMAP(n_neighbors=neighbours, min_dist=spread, random_state=42, n_jobs=1).fit_transform(vectors)


def our_representation(vectors: np.ndarray, groups: np.ndarray) -> None:
    """Compute the same values with the representation protocol."""
    geometry(vectors, groups)
    maps.umap_maps(vectors)


def representation_part(n: int, d: int) -> None:
    """Print the ratio for the geometry of one level and the maps under all settings."""
    features, labels = embeddings(n, d)
    vectors = (features - features.mean(axis=0)) / features.std(axis=0)
    maps.umap_maps(vectors[:200])  # Compile once before timing.
    slow, _ = timed(usual_representation, vectors, labels)
    fast, _ = timed(our_representation, vectors, labels)
    print(
        f"\nrepresentation of {n} records, {len(maps.SETTINGS)} maps: peer {slow:.1f} s, ours {fast:.1f} s, ratio {slow / fast:.1f}, limit {LIMITS['representation']}"
    )


def main() -> None:
    """Run the requested parts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument(
        "--classifiers", nargs="+", choices=CLASSIFIERS, default=CLASSIFIERS, help="classifiers of the grid"
    )
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--d", type=int, default=384)
    parser.add_argument("--folds", type=int, default=3, help="number of folds, of 15")
    parser.add_argument("--repeats", type=int, default=1, help="repetitions with other embeddings and folds")
    asked = parser.parse_args()
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "scikit-learn", "xgboost", "torch", "shap", "umap-learn")
    )
    print(f"{packages}; n = {asked.n}, d = {asked.d}; CPU seconds, one core\n")
    seconds = (
        grid_part(asked.n, asked.d, asked.folds, asked.repeats, asked.classifiers) if "grid" in asked.parts else None
    )
    if "shap" in asked.parts:
        shap_part(asked.n, asked.d, seconds)
    if "representation" in asked.parts:
        representation_part(asked.n, asked.d)


if __name__ == "__main__":
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with threadpool_limits(1):
        main()
