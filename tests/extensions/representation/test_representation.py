"""Test overlap, geometry and maps on embeddings whose dimensions encode one property each."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cardiobench.core.errors import NotApplicable
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.extensions.representation import overlap, similarity
from cardiobench.extensions.representation.geometry import levels
from cardiobench.extensions.representation.protocol import Representation, remark_on_clusters
from cardiobench.protocols import maps
from cardiobench.protocols.analysis import Analysis
from cardiobench.protocols.sample import BalancedSample, DatasetSample, draw
from cardiobench.protocols.subjects import EF_CLASSES, class_tasks_by_label
from cardiobench.results.analysis_result import point_estimate
from tests.protocols.conftest import task_data
from tests.protocols.planted import APART, NAMES, embeddings, study, tasks

ONE_MAP = ((10, 0.1),)


def sample(found):
    return BalancedSample(
        ("no", "yes"),
        tuple(
            DatasetSample(name, features, labels, np.arange(len(labels)), np.arange(len(labels)).astype(str))
            for name, (features, labels) in found.items()
        ),
    )


def first_two_dimensions(vectors, settings, **_):
    """Replace UMAP, which takes seconds to compile."""
    return {maps.setting_name(*setting): vectors[:, :2] for setting in settings}


@pytest.fixture
def small(request, monkeypatch):
    """Return a study that takes a second: one classifier, few folds and records, no UMAP."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(maps, "umap_maps", first_two_dimensions)
    return Representation(classifiers=("logistic",), folds=3, shown=40, records=60, map_settings=ONE_MAP)


@pytest.mark.slow
def test_dataset_only_embedding_separates_datasets(small):
    found = small.analyze(study(embeddings(120, 120, of_dataset=30)), None).values
    assert found["knn_agreement_dataset"].value == 1.0
    assert found["ari_dataset"].value == 1.0
    assert found["ari_label"].value == pytest.approx(0.0, abs=0.02)
    # Neighbours are from the same dataset with random labels: half of the 59 others have the other label.
    assert found["knn_agreement_label"].value == pytest.approx(0.5, abs=0.05)
    assert found["knn_chance_dataset"].value == pytest.approx(59 / 179)
    assert found["centroid_separation_label"].value < 0.3


@pytest.mark.slow
def test_overlap_without_label_signal_is_chance():
    protocol = Representation(
        classifiers=("logistic",), folds=3, shown=60, records=60, refit=True, map_settings=ONE_MAP
    )
    found = protocol.analyze(study(embeddings(60, 400, of_dataset=30)), None).values
    for k in (25, 50, 100):
        assert found[f"chance_at_{k}"].value == k / 400
        # For three pairs of random sets, the standard deviation of a pair's share is sqrt(p (1 - p) (1 - k / q) / k).
        p = k / 400
        spread = np.sqrt(p * (1 - p) * (1 - p) / k / 3)
        assert found[f"overlap_at_{k}"].value == pytest.approx(p, abs=4 * spread)
        assert found[f"p_value_at_{k}"].value > 0.01


@pytest.mark.slow
def test_transferred_classifier_shares_without_learning(small):
    """Check that `shuffled_at_k` rather than k / q is the floor of the transferred overlap, which has no p-value."""
    finding = small.analyze(study(embeddings(60, 400)), None)
    found = finding.values
    assert not [key for key in found if key.startswith("p_value")]
    said = f"{found['overlap_at_50'].value:.2f}; a classifier of noise reaches {found['shuffled_at_50'].value:.2f}"
    assert finding.warnings == (f"overlap of the 50 most important features: {said}",)
    assert found["overlap_at_50"].value > 0.5
    assert found["overlap_at_50"].value == pytest.approx(found["shuffled_at_50"].value, abs=0.15)


@pytest.mark.slow
def test_class_dimensions_are_shared_and_dataset_dimensions_are_not():
    """25 of 125 dimensions encode the class: the first 25 are all shared, and a quarter of the remaining ones by chance."""
    protocol = Representation(
        classifiers=("logistic",), folds=3, shown=100, records=100, refit=True, map_settings=ONE_MAP
    )
    found = protocol.analyze(study(embeddings(100, 125, of_class=25, of_dataset=30, class_apart=3.0)), None)
    assert found.values["overlap_at_25"].value == 1.0 == found.values["common_at_25"].value
    assert found.values["jaccard_at_25"].value == 1.0 and found.values["p_value_at_25"].value == 1 / 100
    assert found.values["shuffled_at_25"].value < 0.5
    (apart,) = (one for one in found.warnings if "classifiers trained apart" in one)
    assert apart.endswith("p = 0.01 by 99 refits on permuted labels")
    assert found.values["overlap_at_50"].value == pytest.approx((25 + 25 * 25 / 100) / 50, abs=0.12)
    top = found.tables["importance"]["dimension"].to_numpy()[:25]
    assert sorted(top) == list(range(25))
    assert found.tables["pairs"].query("k == 25")["shared"].tolist() == [1.0] * 9, "each with each other"
    assert (found.values["overlap_at_25"].low, found.values["overlap_at_25"].high) == (1.0, 1.0)


def results_of(found):
    """Return searches that chose the same C for each dataset."""
    return {name: {"logistic": overlap.SearchResult(name, "logistic", 0.9, 0.1, {"C": 0.1})} for name in found}


@pytest.mark.parametrize("of_class", [0, 15])
def test_overlap_is_compared_with_permuted_refits(of_class, monkeypatch):
    monkeypatch.setattr(overlap, "REFITS", 19)
    found = embeddings(80, 120, of_class=of_class, class_apart=2.0, names=("one", "two"))
    searched, records = results_of(found), sample(found)
    chosen = searched["one"]["logistic"]
    shap = overlap.explain(records, chosen, searched, refit=True, rows=80, seed=0)
    noise = overlap.noise_overlaps(records, chosen, searched, shap, rows=80, seed=0)
    again = overlap.noise_overlaps(records, chosen, searched, shap, rows=80, seed=0)
    reached = np.array([one["overlap_at_25"] for one in noise])
    assert len(noise) == 19 and reached.std() > 0 and noise == again
    assert not [key for key in noise[0] if key.startswith("p_value")]
    seen = overlap.overlap(shap)["overlap_at_25"]
    assert np.mean(reached) == pytest.approx(25 / 120, abs=0.06), "permuted labels contain no information"
    assert (seen > reached.max()) == bool(of_class)


def test_geometry_of_class_and_dataset_dimensions_by_hand():
    m, p, d, each = 8, 6, 20, 300
    found = levels(sample(embeddings(each, d, of_class=m, of_dataset=p)))
    # A class dimension has variance 1 + (a/2)^2 over all records; a dataset dimension, which one of three datasets has,
    # 1 + a^2 (1/3)(2/3). Standardised, the classes lie (a / s) apart in m dimensions and are of radius
    # sqrt(m / s^2 + p + rest), since dataset dimensions vary within a class as they do altogether.
    of_class, of_dataset = 1 + APART**2 / 4, 1 + APART**2 * 2 / 9
    apart = np.sqrt(m * APART**2 / of_class)
    radius = np.sqrt(m / of_class + (d - m))
    assert found["label"]["centroid_separation"] == pytest.approx(apart / radius, rel=0.03)
    # Two datasets differ in 2/3 of the dataset dimensions; within a dataset, class dimensions vary as in the whole.
    apart = np.sqrt(p * 2 / 3 * APART**2 / of_dataset)
    radius = np.sqrt(p / of_dataset + (d - p))
    assert found["dataset"]["centroid_separation"] == pytest.approx(apart / radius, rel=0.03)
    assert found["label"]["knn_agreement"] == found["dataset"]["knn_agreement"] == 1.0
    assert found["label"]["chance"] == pytest.approx((3 * each / 2 - 1) / (3 * each - 1))
    # Within a dataset, only the classes differ.
    assert found["label in one"]["ari"] == 1.0
    assert found["label in one"]["centroid_separation"] == pytest.approx(
        np.sqrt(m * APART**2 / of_class) / np.sqrt(m / of_class + (d - m)), rel=0.04
    )


def test_class_only_embedding_hides_the_dataset():
    found = levels(sample(embeddings(200, 12, of_class=6)))
    assert found["label"]["ari"] == found["label"]["knn_agreement"] == 1.0
    assert found["dataset"]["ari"] == pytest.approx(0, abs=0.02)
    assert found["dataset"]["knn_agreement"] == pytest.approx(found["dataset"]["chance"], abs=0.03)
    assert found["dataset"]["centroid_separation"] < 0.2


@pytest.mark.slow
def test_important_dimensions_encode_only_the_class(small):
    """Of 60 dimensions, 10 encode the class and 30 the dataset; the 10 most important ones are those of the class."""
    found = embeddings(60, 60, of_class=10, of_dataset=30, class_apart=3.0)
    everywhere = small.analyze(study(found), None).values
    top = replace(small, map_dimensions=10, geometry_in="top").analyze(study(found), None).values
    assert everywhere["knn_agreement_dataset"].value == 1.0
    assert top["knn_agreement_dataset"].value == pytest.approx(top["knn_chance_dataset"].value, abs=0.1)
    assert top["knn_agreement_label"].value > 0.99


@pytest.mark.slow
def test_sparse_classifier_is_not_evidence_of_sharing():
    protocol = Representation(classifiers=("tree",), folds=3, shown=40, records=60, map_settings=ONE_MAP)
    finding = protocol.analyze(study(embeddings(60, 120, of_class=1)), None)
    assert set(finding.options["dimensions_used"].values()) == {1}, "one dimension encodes the class"
    assert np.isnan(finding.values["overlap_at_25"].value) and np.isnan(finding.values["shuffled_at_25"].value)
    assert finding.values["overlap_at_25"].reason == "the classifier uses 1 of 120 dimensions"
    said = "tree uses 1 dimensions: the overlap at 25, 50, 100 is undefined"
    assert any(said in warning for warning in finding.warnings)


def test_single_dataset_has_no_overlap(small):
    found = small.analyze(study(embeddings(60, 40, of_class=30, names=("one",))), None)
    assert np.isnan(found.values["overlap_at_50"].value) and "only dataset" in found.values["overlap_at_50"].reason
    assert np.isnan(found.values["knn_agreement_dataset"].value)
    assert found.values["knn_agreement_label"].value == 1.0
    assert set(found.tables) == {"geometry", "maps", "stability"}


def test_too_few_dimensions_are_reported(small):
    found = small.analyze(study(embeddings(60, 40, of_class=5)), None).values
    assert np.isnan(found["overlap_at_50"].value) and "40 dimensions" in found["overlap_at_50"].reason
    assert found["overlap_at_25"].value > 0


def test_best_classifier_of_the_best_dataset_is_chosen():
    def one(dataset, name, median, iqr):
        return overlap.SearchResult(dataset, name, median, iqr, {})

    found = {
        "a": {"tree": one("a", "tree", 0.90, 0.1), "mlp": one("a", "mlp", 0.8, 0.0)},
        "b": {"tree": one("b", "tree", 0.90, 0.2), "mlp": one("b", "mlp", 0.9, 0.05)},
    }
    assert (overlap.best_overall(found).dataset, overlap.best_overall(found).classifier) == ("b", "mlp")


def test_overlap_is_resampled_over_patients():
    """Check that two records of a patient are drawn together, and that resamples of a constant dataset do not vary."""
    rng = np.random.default_rng(0)
    alike = np.tile(rng.random(60), (20, 1))
    values = {"a": alike, "b": rng.random((20, 60))}
    owners = {"a": np.repeat(np.arange(10), 2), "b": np.repeat(np.arange(10), 2)}
    drawn = overlap.overlap_resamples(values, owners, 50, 0)["overlap_at_25"]
    assert drawn.shape == (50,) and drawn.std() > 0
    still = overlap.overlap_resamples({"a": alike, "b": alike}, owners, 50, 0)["overlap_at_25"]
    assert still.tolist() == [1.0] * 50


def test_drawn_records_are_balanced_and_nested():
    (task,) = tasks(("one",))
    rng = np.random.default_rng(0)
    labels = rng.choice(["no", "yes"], 300, p=[0.7, 0.3])
    owners = [f"p{number // 2}" for number in range(300)]
    data = task_data(task, np.arange(300)[:, None].astype(float), labels, ["train"] * 300, owners)
    made = Analysis("cd", (task,), {}, 0, 10, lambda task, change: data, lambda task: None)
    (large,), (little,) = draw(made, 60).parts, draw(made, 20).parts
    assert np.bincount(large.labels).tolist() == [30, 30] and np.bincount(little.labels).tolist() == [10, 10]
    assert len(set(large.patients)) == 60
    assert set(little.ids) <= set(large.ids)
    of = dict(zip(data.rows["id"], data.rows["cd"], strict=True))
    assert [of[name] for name in large.ids] == ["yes" if label else "no" for label in large.labels]
    # A patient with both labels is positive.
    both = {owner for owner in owners if set(data.rows.loc[data.rows["patient_id"] == owner, "cd"]) == {"no", "yes"}}
    assert not both & set(large.patients[large.labels == 0])


def test_dataset_with_one_class_is_left_out_and_named(small):
    found = embeddings(60, 30, of_class=5)
    features, labels = found["two"]
    found["two"] = features, np.zeros_like(labels)
    finding = small.analyze(study(found), None)
    assert any("two has too few records" in sentence for sentence in finding.warnings)
    assert finding.options["records_in_geometry"] == {"one": 60, "three": 60}
    with pytest.raises(NotApplicable, match="too few"):
        small.analyze(study({name: (part[0], part[1] * 0) for name, part in found.items()}), None)


def test_labels_are_compared_across_datasets_and_never_with_the_same_recordings():
    known = [task for name in catalog.list_datasets() for task in catalog.spec(name).tasks]
    found = {label: tuple(task.dataset for task in members) for label, members in class_tasks_by_label(known).items()}
    assert {"code15", "georgia", "chapman_ningbo"} <= set(found["cd"])
    assert "ptb_xl_500" in found["cd"] and not {"ptb_xl", "ptb_xl_sample"} & set(found["cd"]), "500 Hz precedes 100 Hz"
    # The protocol is not specific to ECG: use views and ejection fraction classes of echo datasets.
    assert len(found["view"]) > 2 and {"camus", "echonet_dynamic", "echonet_pediatric"} <= set(found["ef"])
    assert "lvidd" not in found


def test_classes_of_the_ejection_fraction():
    tasks_of_ef = tuple(Task(f"{name}/ef", "regression", "ef", ("mae",), unit="%") for name in ("camus", "other"))
    rng = np.random.default_rng(0)
    # EF 40 is reduced, EF 50 is preserved.
    values = np.repeat([30.0, 40.0, 45.0, 50.0, 60.0], 15)
    data = {
        task.name: task_data(task, rng.normal(size=(75, 8)) + values[:, None], values, ["train"] * 75)
        for task in tasks_of_ef
    }
    made = Analysis("ef", tasks_of_ef, {}, 0, 10, lambda task, change: data[task.name], lambda task: None)
    drawn = draw(made, 90)
    assert drawn.classes == EF_CLASSES == ("reduced", "mildly reduced", "preserved")
    assert np.bincount(drawn.parts[0].labels).tolist() == [15, 15, 15], "as many as in the smallest, 45 %"
    part = drawn.parts[0]
    assert part.features[part.labels == 0].mean() < 42 and part.features[part.labels == 2].mean() > 49


@pytest.mark.slow
def test_record_holds_all_tables_of_its_figures(small, tmp_path):
    from cardiobench.extensions.representation import figures as representation
    from cardiobench.results.analysis_result import AnalysisResult

    two = replace(small, map_settings=((10, 0.1), (20, 0.5)))
    finding = two.analyze(study(embeddings(60, 120, of_class=10, of_dataset=10)), None)
    record = AnalysisResult(
        "representation", "cd", (), finding.values, finding.tables, options=finding.options, models=({"name": "a/b"},)
    )
    record.save(tmp_path / "across__cd.json")
    figures = representation.draw(AnalysisResult.load(tmp_path / "across__cd.json"))
    assert {"overlap", "maps", "stability"} <= set(figures)
    one = {"maps": finding.tables["maps"].query("setting == setting.iloc[0]")}
    assert "stability" not in representation.draw(replace(record, tables={**finding.tables, **one})), (
        "two datasets are compared"
    )
    assert set(finding.tables["maps"].columns) == {"setting", "dataset", "label", "id", "x", "y"}
    assert len(finding.tables["maps"]) == 2 * 180
    assert finding.options["trained_on"] in NAMES and finding.options["classifier"] == "logistic"
    assert isinstance(finding.tables["classifiers"], pd.DataFrame)


def test_model_similarity_uses_common_records(small):
    rng = np.random.default_rng(0)
    one = embeddings(60, 10, seed=1)
    turn = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    turned = {name: (3 * features @ turn, labels) for name, (features, labels) in one.items()}
    other = embeddings(60, 10, seed=2)
    studies = [study(found) for found in (one, turned, other)]
    studies = [Analysis(**{**vars(made), "model": {"name": name}}) for made, name in zip(studies, "abc", strict=True)]
    found = small.compare_models(studies)
    table = found.tables["cka"].set_index(["model", "other", "dataset"])["linear_cka"]
    assert len(table) == 3 * 4, "three pairs, three datasets, and all"
    assert table["a", "b", "one"] == pytest.approx(1), "rotated and scaled but otherwise equal"
    assert table["a", "c", "two"] < 0.3
    assert found.values["linear_cka of a and b"].n == 180
    correlated = found.tables["cka"].set_index(["model", "other", "dataset"])["canonical_correlation"]
    assert correlated["a", "b", "one"] == pytest.approx(1, abs=1e-4)
    assert found.values["canonical_correlation of a and c"].value == correlated["a", "c", "all"] < 0.4
    figures = __import__("cardiobench.extensions.representation.figures", fromlist=["draw"])
    from cardiobench.results.analysis_result import AnalysisResult

    assert set(figures.draw(AnalysisResult("representation", "cd", (), found.values, found.tables))) == {"cka"}


def test_canonical_correlation_equals_that_of_orthogonal_bases():
    """Compare with the singular values of the product of two orthonormal bases (Bjorck and Golub 1973)."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(300, 4))
    one = np.hstack([shared + 0.5 * rng.normal(size=(300, 4)), rng.normal(size=(300, 40))])
    other = np.hstack([shared, rng.normal(size=(300, 20))]) @ rng.normal(size=(24, 24))
    bases = []
    for part in (one, other):
        centred = part - part.mean(axis=0)
        bases.append(np.linalg.svd(centred, full_matrices=False)[0][:, :10])
    expected = np.linalg.svd(bases[0].T @ bases[1], compute_uv=False).mean()
    assert similarity.canonical_correlation(one, other) == pytest.approx(expected, abs=5e-3)
    assert np.isnan(similarity.canonical_correlation(one[:9], other[:9])), "too few records"
    assert np.isnan(similarity.canonical_correlation(one, np.ones((300, 3)))), "constant vectors"
    few = similarity.canonical_correlation(one[:40], rng.normal(size=(40, 30)))
    assert few < 0.7, "four directions of forty records"


def test_clusters_by_dataset_are_remarked():
    def values(by_dataset, by_label):
        return {"ari_dataset": point_estimate(by_dataset), "ari_label": point_estimate(by_label)}

    (remark,) = remark_on_clusters(values(0.83, 0.02))
    assert remark.startswith("clusters follow the datasets and not the label") and "0.83 by dataset and 0.02" in remark
    for pair in ((0.4, 0.02), (0.83, 0.3), (np.nan, 0.0), (0.9, np.nan)):
        assert remark_on_clusters(values(*pair)) == []


@pytest.mark.parametrize("profile", ["default", "paper"])
def test_maps_of_one_pathology_need_few_records(profile, monkeypatch):
    """Figure 18 of arXiv:2510.00520 shows the test split, with as few as a dozen patients of a class."""
    monkeypatch.setattr(maps, "umap_maps", first_two_dimensions)
    task = catalog.task("segrwma/rwma_a2c")
    rng, count = np.random.default_rng(0), 32
    labels = np.resize([0, 0, 1], count)
    split = np.resize(["test", "test", "test", "train"], count)
    names = [task.classes[label] for label in labels]
    data = task_data(task, rng.normal(size=(count, 8)) + labels[:, None], names, split)
    analysis = Analysis("rwma", (task,), {"name": "m"}, 0, 50, lambda task, perturbation: data, lambda task: None)
    found = Representation(profile=profile).analyze(analysis, None)
    shown = found.tables["maps"]
    settings = {"default": 4, "paper": 1}[profile]
    per_class = min(np.bincount(labels[split == "test"] if profile == "paper" else labels))
    assert per_class < 15 and len(shown) == settings * 2 * per_class
    assert profile == "default" or set(shown["setting"]) == {"30 neighbours, distance 0.1"}
