"""Compare metrics of embeddings with scikit-learn, scipy, closed forms and hand-worked values."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from cardiobench.metrics.load import load_metric

NAMES = (
    "knn_agreement",
    "centroid_separation",
    "silhouette",
    "linear_cka",
    "retrieval_recall",
    "text_axis_pearson",
    "shap_overlap",
)
KNN, CENTROID, SILHOUETTE, CKA, RECALL, AXIS, OVERLAP = (load_metric(name).compute for name in NAMES)


def groups(n=200, d=7, k=3, seed=0, apart=1.5):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, k, n)
    return label, rng.normal(size=(n, d)) + apart * np.eye(d)[label]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("n", [12, 200, 1300])
def test_knn_agreement_against_scikit_learn(metric, n):
    label, vectors = groups(n)
    nearest = (
        NearestNeighbors(n_neighbors=10, metric=metric, algorithm="brute")
        .fit(vectors)
        .kneighbors(return_distance=False)
    )
    found = KNN(label, vectors + (1e3 if metric == "euclidean" else 0), metric=metric)
    assert found["knn_agreement"] == pytest.approx((label[nearest] == label[:, None]).mean(), abs=1e-12)
    pairs = [a == b for a, b in itertools.combinations(label.tolist(), 2)]
    assert found["chance"] == pytest.approx(np.mean(pairs))


def test_knn_agreement_of_ties_does_not_depend_on_the_order():
    # The neighbours of 0 at distance 1 are -1 and +1, with half a vote each.
    label, vectors = np.array([0, 0, 1]), np.array([[0.0], [1.0], [-1.0]])
    # For 0: half; for 1: 0 is nearest with the same label; for -1: 0 is nearest with another label.
    assert KNN(label, vectors, k=1)["knn_agreement"] == pytest.approx((0.5 + 1 + 0) / 3)
    label, vectors = groups(60)
    same = np.repeat(vectors[:6], 10, axis=0)
    order = np.random.default_rng(1).permutation(60)
    assert KNN(label, same, k=4) == pytest.approx(KNN(label[order], same[order], k=4))
    assert KNN(label, np.ones((60, 3)))["knn_agreement"] == pytest.approx(KNN(label, vectors)["chance"])


def test_centroid_separation_by_hand():
    assert CENTROID([0, 0, 1, 1], [[-1, 0], [1, 0], [-1, 3], [1, 3]]) == {"centroid_separation": 3.0}
    # Centres 0, 4 and 10 on a line; radii: pair (0,1) sqrt((2+8)/4), (0,2) sqrt(2/3), (1,2) sqrt(8/3).
    found = CENTROID(["a", "a", "b", "b", "c"], [[-1], [1], [2], [6], [10]])["centroid_separation"]
    assert found == pytest.approx((4 / 2.5**0.5 + 10 / (2 / 3) ** 0.5 + 6 / (8 / 3) ** 0.5) / 3)


def test_centroid_separation_of_two_gaussians():
    """Test unit Gaussians in d dimensions at distance s: the radius is sqrt(d), so the value is s / sqrt(d)."""
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], 20_000)
    vectors = rng.normal(size=(40_000, 9)) + 6 * np.eye(9)[0] * label[:, None]
    assert CENTROID(label, vectors)["centroid_separation"] == pytest.approx(2, abs=0.02)
    assert CENTROID(label, vectors * 1e5 - 7)["centroid_separation"] == pytest.approx(2, abs=0.02)


@pytest.mark.parametrize(
    ("variant", "expected"),
    # Centroids have distance 4; distances to them are 1, 1 and 3, 3: root mean square sqrt(5), mean 2; two dimensions.
    [("pooled_radius", 4 / 5**0.5), ("mean_distance", 2.0), ("per_dimension", 4 / 2.5**0.5), ("unscaled", 4.0)],
)
def test_every_variant_of_centroid_separation_by_hand(variant, expected):
    vectors = [[-1.0, 0.0], [1.0, 0.0], [-3.0, 4.0], [3.0, 4.0]]
    assert CENTROID([0, 0, 1, 1], vectors, variant)["centroid_separation"] == pytest.approx(expected)
    with pytest.raises(ValueError, match="give one of pooled_radius"):
        CENTROID([0, 1], [[0.0], [1.0]], "fisher")


def test_centroid_separation_without_pairs_or_spread():
    assert np.isnan(CENTROID([0, 0], [[1.0], [2.0]])["centroid_separation"])
    assert np.isnan(CENTROID([0, 1], [[1.0], [2.0]])["centroid_separation"])


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_silhouette_against_its_definition(metric):
    label, vectors = groups(60)
    label[0] = 9  # This row is the only member of its group.
    distance = cdist(vectors, vectors, metric)
    expected = []
    for i in range(60):
        own = (label == label[i]) & (np.arange(60) != i)
        if not own.any():
            expected.append(0.0)
            continue
        a = distance[i, own].mean()
        b = min(distance[i, label == other].mean() for other in set(label.tolist()) - {label[i]})
        expected.append((b - a) / max(a, b))
    assert SILHOUETTE(label, vectors, metric)["silhouette"] == pytest.approx(np.mean(expected), abs=1e-9)


def test_silhouette_undefined():
    assert np.isnan(SILHOUETTE([1, 1, 1], [[0.0], [1.0], [2.0]])["silhouette"])
    assert np.isnan(SILHOUETTE([0, 1, 2], [[0.0], [1.0], [2.0]])["silhouette"])


@pytest.mark.parametrize(("n", "d1", "d2"), [(100, 5, 8), (20, 60, 30), (20, 30, 3)])
def test_cka_against_its_definition_with_kernels(n, d1, d2):
    """Compute HSIC of centred linear kernels, divided by the root of the product of their own HSICs."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d1)) * 50 + 1e3
    y = np.hstack([x[:, : d2 // 2], rng.normal(size=(n, d2 - d2 // 2))])
    centre = np.eye(n) - 1 / n
    k, m = centre @ x @ x.T @ centre, centre @ y @ y.T @ centre
    expected = np.trace(k @ m) / np.sqrt(np.trace(k @ k) * np.trace(m @ m))
    assert CKA(x, y)["linear_cka"] == pytest.approx(expected, abs=1e-9) == pytest.approx(CKA(y, x)["linear_cka"])


def test_cka_does_not_see_rotation_shift_and_scale():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 6))
    turned = x @ stats.ortho_group.rvs(6, random_state=0) * 1e4 + 3
    assert CKA(x, turned)["linear_cka"] == pytest.approx(1)
    assert CKA(x, np.column_stack([[1.0, -1.0] * 25, [0.0] * 50]))["linear_cka"] < 0.2
    assert np.isnan(CKA(x, np.full((50, 2), 0.1))["linear_cka"])


def test_recall_against_a_sort():
    rng = np.random.default_rng(0)
    targets = rng.normal(size=(1500, 16))
    queries = targets + rng.normal(size=targets.shape) * 1.6
    cosine = 1 - cdist(queries, targets, "cosine")
    rank = np.array([np.flatnonzero(np.argsort(-row) == i)[0] + 1 for i, row in enumerate(cosine)])
    found = RECALL(targets, queries * 7)
    assert 0.1 < found["recall_at_1"] < 0.9
    assert [found[f"recall_at_{k}"] for k in (1, 5, 10)] == [np.mean(rank <= k) for k in (1, 5, 10)]
    assert found["median_rank"] == np.median(rank)


def test_recall_of_collapsed_model_is_zero():
    found = RECALL(np.ones((50, 4)), np.random.default_rng(0).normal(size=(50, 4)) + 3)
    assert (found["recall_at_1"], found["recall_at_10"], found["median_rank"]) == (0, 0, 50)
    targets = np.random.default_rng(1).normal(size=(50, 4))
    assert RECALL(targets, targets)["recall_at_1"] == 1


def prompt_grid(rng, n=80, d=12, noise=0.5):
    """Return texts along one direction, and recordings along the same direction with noise."""
    base, direction = rng.normal(size=d) * 5, rng.normal(size=d)
    texts = base + np.linspace(0, 3, 101)[:, None] * direction + rng.normal(size=(101, d)) * 0.05
    values = rng.uniform(10, 80, n)
    vectors = base + (values / 100 * 3)[:, None] * direction + rng.normal(size=(n, d)) * noise
    return values, vectors, texts


def test_text_axis_against_scikit_learn_and_scipy():
    values, vectors, texts = prompt_grid(np.random.default_rng(0))
    found = AXIS(values, vectors, texts)
    unit = texts / np.linalg.norm(texts, axis=1, keepdims=True)
    pca = PCA(1).fit(unit)
    place = vectors / np.linalg.norm(vectors, axis=1, keepdims=True) @ pca.components_[0]
    place *= np.sign(np.corrcoef(pca.transform(unit)[:, 0], np.arange(101))[0, 1])
    assert (
        found["text_axis_pearson"] == pytest.approx(stats.pearsonr(place, values)[0], abs=1e-9)
        and found["text_axis_pearson"] > 0.2
    )
    assert found["spearman"] == pytest.approx(stats.spearmanr(place, values)[0], abs=1e-9)
    assert found["r2"] == pytest.approx(found["text_axis_pearson"] ** 2)
    assert found["explained_variance"] == pytest.approx(pca.explained_variance_ratio_[0], abs=1e-9)


def test_text_axis_takes_its_sign_from_the_numbers():
    values, vectors, texts = prompt_grid(np.random.default_rng(1))
    found = AXIS(values, vectors, texts)["text_axis_pearson"]
    assert AXIS(values, vectors, texts[::-1])["text_axis_pearson"] == pytest.approx(-found)
    assert AXIS(values, vectors, texts[::-1], text_values=np.arange(101)[::-1])["text_axis_pearson"] == pytest.approx(
        found
    )


@pytest.mark.slow
def test_text_axis_p_value_against_scipy():
    values, vectors, texts = prompt_grid(np.random.default_rng(2), n=12)
    values = np.random.default_rng(3).permutation(values)
    found = AXIS(values, vectors, texts, permutations=4000)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    axis = PCA(1).fit(texts / np.linalg.norm(texts, axis=1, keepdims=True)).components_[0]
    expected = stats.permutation_test(
        (unit @ axis, values), lambda x, y: stats.pearsonr(x, y)[0], permutation_type="pairings", n_resamples=2000, rng=0
    ).pvalue  # fmt: skip
    assert 0.05 < expected < 0.95
    assert found["p_value"] == pytest.approx(expected, abs=0.05)
    assert AXIS(*prompt_grid(np.random.default_rng(0), noise=0.1))["p_value"] == pytest.approx(1 / 1001)


def test_text_axis_undefined():
    values, vectors, texts = prompt_grid(np.random.default_rng(0))
    same = np.tile(texts[0], (101, 1))
    assert np.isnan(AXIS(values, vectors, same)["text_axis_pearson"])
    assert np.isnan(AXIS(np.full(80, 0.1), vectors, texts)["p_value"])
    assert np.isnan(AXIS(values, np.tile(vectors[0], (80, 1)), texts)["text_axis_pearson"])


def sets(*tops, q=200):
    """Return importances whose most important features are these, in this order."""
    table = np.zeros((len(tops), q))
    for row, top in zip(table, tops, strict=True):
        row[list(top)] = np.arange(len(top), 0, -1)
    return table


def test_overlap_by_hand():
    # First 50 features: 0-49, 25-74, 0-24 and 75-99; of 50, they share 25, 25 and 0.
    found = OVERLAP(sets(range(50), range(25, 75), [*range(25), *range(75, 100)]))
    assert found["shap_overlap"] == found["overlap_at_50"] == pytest.approx((25 + 25 + 0) / 150)
    assert found["common_at_50"] == 0 and found["jaccard_at_50"] == pytest.approx((25 / 75 + 25 / 75 + 0) / 3)
    assert [found[f"chance_at_{k}"] for k in (25, 50, 100)] == [0.125, 0.25, 0.5]
    # The first 25 are 0-24, 25-49 and 0-24.
    assert found["overlap_at_25"] == pytest.approx(1 / 3) and found["common_at_25"] == 0


def test_overlap_of_equal_importances_follows_the_order_of_features():
    found = OVERLAP([[1.0] * 200, sets(range(50))[0].tolist()])  # The second has 50 features.
    assert found["overlap_at_50"] == 1 and found["common_at_50"] == 1 and found["jaccard_at_50"] == 1


def test_overlap_is_undefined_above_the_number_of_features_used_by_every_dataset():
    one = np.zeros((3, 200))
    one[:, 7] = 1.0
    found = OVERLAP(one)
    assert all(np.isnan(value) for key, value in found.items() if not key.startswith("chance"))
    found = OVERLAP(sets(range(60), range(30)))
    assert found["overlap_at_25"] == 1 and np.isnan(found["overlap_at_50"]) and np.isnan(found["shap_overlap"])


def test_rankings_give_the_same_as_importances():
    table = np.random.default_rng(0).gamma(1, size=(4, 120))
    order = np.argsort(-table, axis=1)
    assert OVERLAP(order, rankings=True) == OVERLAP(table)
    assert OVERLAP(order.tolist(), rankings=True) == OVERLAP(table)


def test_overlap_of_few_features_is_undefined():
    found = OVERLAP(np.random.default_rng(0).gamma(1, size=(3, 60)))
    assert (
        np.isfinite(found["overlap_at_50"]) and np.isnan(found["overlap_at_100"]) and np.isnan(found["p_value_at_100"])
    )


@pytest.mark.parametrize("shared", [8, 10, 13])
def test_overlap_p_value_of_two_sets_is_hypergeometric(shared):
    first = range(25)
    second = [*range(shared), *range(25, 50 - shared)]
    found = OVERLAP(sets(first, second, q=90), permutations=4000)
    assert found["overlap_at_25"] == pytest.approx(shared / 25)
    assert found["p_value_at_25"] == pytest.approx(stats.hypergeom(90, 25, 25).sf(shared - 1), abs=0.025)


def test_overlap_of_random_importances_is_chance():
    rng = np.random.default_rng(0)
    found = [OVERLAP(rng.gamma(1, size=(4, 160)), permutations=99) for _ in range(120)]
    assert np.mean([f["shap_overlap"] for f in found]) == pytest.approx(50 / 160, abs=0.01)
    assert np.mean([f["p_value_at_50"] for f in found]) == pytest.approx(0.5, abs=0.12)


cells = st.one_of(st.floats(width=16), st.integers(-2, 2), st.none(), st.text(max_size=1))
tables = st.lists(st.one_of(st.lists(cells, min_size=2, max_size=2), st.lists(cells, max_size=3), cells), max_size=5)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(references=tables, predictions=tables)
def test_any_tables_are_scored_or_refused(references, predictions):
    for compute in (
        lambda r, p: KNN(r, p, k=1),
        CENTROID,
        SILHOUETTE,
        CKA,
        RECALL,
        lambda r, p: AXIS(r, p, p),
        lambda r, p: OVERLAP(p),
    ):
        try:
            found = compute(references, predictions)
        except ValueError as error:
            assert str(error)
        else:
            assert found
