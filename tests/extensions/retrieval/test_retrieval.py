"""Test captions by hand, ranks against the metric, chance by shuffling, and models that do or do not understand negation."""

import numpy as np
import pytest
import torch

from cardiobench.core.errors import NotApplicable
from cardiobench.data.spec import Task
from cardiobench.extensions.retrieval import figures as figure
from cardiobench.extensions.retrieval import protocol as retrieval
from cardiobench.extensions.retrieval.captions import make_caption, statement
from cardiobench.extensions.retrieval.protocol import Retrieval, chance_level, score_ranks
from cardiobench.metrics.load import load_metric
from cardiobench.results.analysis_result import AnalysisResult
from tests.protocols.analyses import study_of
from tests.protocols.conftest import task_data

EF = Task("phantom_echo/ef", "regression", "ef", ("mae",), unit="%")
STENOSIS = Task("tmed2/as", "binary", "as", ("f1_macro",), ("no_AS", "AS"))
ROW = {"view": "A4C", "sex": "F", "ef": 44.6, "lvidd": 5.5, "ivsd": 0.8, "lvpwd": float("nan")}


def test_caption_by_hand():
    said = make_caption(ROW, (EF,))
    assert said.text == (
        "Apical four-chamber view. Mildly reduced ejection fraction, left ventricular dilatation, no increased septal "
        "thickness. Ejection fraction 45%, LVIDd 5.5 cm, IVSd 0.8 cm."
    )
    assert said.negated("mildly reduced ejection fraction").text == said.text.replace("Mildly", "No mildly")
    assert said.negated("increased septal thickness").text == said.text.replace("no increased", "increased")


def test_measurements_of_a_study_make_a_sentence():
    row = {
        "ef": 60.0,
        "lvedd": 4.62,
        "inf_lat_thickness": 1.04,
        "la_vol": 51.7,
        "tr_velocity": 2.4,
        "as_modsev": "present",
    }
    valve = Task("mimic_iv_echo/as_modsev", "binary", "as_modsev", ("f1_macro",), ("absent", "present"))
    assert make_caption(row, (valve,)).text == (
        "No reduced ejection fraction, no left ventricular dilatation. Ejection fraction 60%, LVEDD 4.6 cm, "
        "inferolateral wall 1.0 cm, LA volume 52 mL, TR 2.4 m/s."
    )


def test_limits_depend_on_sex_and_unknown_sex_is_null():
    assert make_caption({**ROW, "sex": "M"}, ()).findings["left ventricular dilatation"] is False
    assert "left ventricular dilatation" not in make_caption({**ROW, "sex": None}, ()).findings
    assert make_caption({**ROW, "sex": None, "lvidd": 6.4}, ()).findings["left ventricular dilatation"] is True
    # Classes of the guideline: reduced up to 40 %, mildly reduced from 41 to 49 %.
    classes = {ef: make_caption({"ef": ef}, ()).findings for ef in (40.0, 41.0, 49.0, 50.0)}
    assert classes[40.0] == {"reduced ejection fraction": True}
    assert classes[41.0] == classes[49.0] == {"mildly reduced ejection fraction": True}
    assert classes[50.0] == {"reduced ejection fraction": False}


def test_no_limit_of_adults_is_applied_to_a_child():
    pediatric = Task("echonet_pediatric/ef", "regression", "ef", ("mae",), unit="%")
    for row, tasks in ((ROW | {"age": 12.0}, (EF,)), (ROW, (pediatric,))):
        said = make_caption(row, tasks)
        assert not said.findings and "Ejection fraction 45%" in said.text
    assert make_caption(ROW | {"age": 18.0}, (pediatric,)).findings


def test_thick_wall_is_not_hypertrophy():
    said = make_caption({"sex": "M", "ivsd": 1.2, "lvpwd": 1.2}, ())
    assert said.text == "Increased septal thickness, increased posterior wall thickness. IVSd 1.2 cm, LVPWd 1.2 cm."


def test_two_class_labels_become_known_findings():
    assert (
        make_caption({"as": "AS", "view": "PLAX"}, (STENOSIS,)).text == "Parasternal long-axis view. Aortic stenosis."
    )
    assert make_caption({"as": "no_AS", "view": "Other"}, (STENOSIS,)).text == "No aortic stenosis."
    assert make_caption({"as": None, "view": None}, (STENOSIS,)).text == ""
    assert (statement("aortic stenosis", True), statement("aortic stenosis", False)) == (
        "There is aortic stenosis.",
        "There is no aortic stenosis.",
    )


class Reader:
    """Model that hashes texts and images to random directions; an image has the direction of its caption."""

    name, modalities, pooling, dim, logit_scale = "reader", ("echo",), "mean_l2", 64, 10.0
    revision, sampling, preprocessing, loaded_by, warnings = "0", None, {}, "", ()
    asked: tuple[str, ...] = ()

    def transform(self, recording): ...

    def encode(self, parts): ...

    def to(self, device):
        return self

    def encode_text(self, texts):
        self.asked += tuple(texts)
        return torch.tensor(np.stack([self.vector(text) for text in texts]), dtype=torch.float32)

    def vector(self, text):
        found = np.random.default_rng(list(text.encode())).normal(size=self.dim)
        return found / np.linalg.norm(found)


def rows(count, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "view": rng.choice(["A2C", "A4C"], count).tolist(),
        "sex": ["F"] * count,
        "lvidd": rng.uniform(4, 7, count).round(1).tolist(),
    }


def pictured(encoder, count=40, noise=0.0, seed=0):
    """Return images that are noisy vectors of their captions."""
    rng = np.random.default_rng(seed)
    columns, ef = rows(count), rng.uniform(20, 70, count).round().tolist()
    facts = [{"ef": ef[n], **{key: value[n] for key, value in columns.items()}} for n in range(count)]
    vectors = [encoder.vector(make_caption(row, (EF,)).text) + noise * rng.normal(size=encoder.dim) for row in facts]
    return task_data(EF, vectors, ef, ["test"] * count, [f"p{n // 2}" for n in range(count)], "mean_l2", **columns)


@pytest.mark.slow
def test_perfect_model_finds_all_and_random_is_at_chance():
    reader = Reader()
    finding = Retrieval().analyze(study_of(pictured(reader)), reader)
    recall = finding.tables["recall"]
    assert (recall.loc[recall["measure"] == "recall_at_1", "value"] == 1).all()
    assert (recall.loc[recall["measure"] == "median_rank", "value"] == 1).all()
    assert len(reader.asked) == len(set(reader.asked)), "each text is encoded once"
    lost = Retrieval().analyze(study_of(pictured(reader, 200, noise=50.0), resamples=50), reader).tables["recall"]
    within = lost[(lost["measure"] == "recall_at_10") & (lost["gallery"] != retrieval.NEGATED)]
    assert (within["low"] <= within["chance"]).all() and (within["chance"] <= within["high"]).all()
    assert set(recall["gallery"]) == {retrieval.ACROSS, retrieval.WITHIN, retrieval.NEGATED}


def test_ranks_equal_the_metric_for_unique_captions():
    reader = Reader()
    data = pictured(reader, 40, noise=0.35)
    finding = Retrieval().analyze(study_of(data, resamples=20), reader)
    captions = finding.tables["captions"]["caption"]
    assert captions.is_unique
    texts, pictures = np.stack([reader.vector(text) for text in captions]), data.features
    recall = finding.tables["recall"].set_index(["gallery", "direction", "measure"])["value"]
    for direction, predictions, references in (
        (retrieval.TO_TEXT, pictures, texts),
        (retrieval.TO_IMAGE, texts, pictures),
    ):
        for name, value in load_metric("retrieval_recall").compute(references, predictions).items():
            assert recall[retrieval.ACROSS, direction, name] == pytest.approx(value)
    assert 0.1 < recall[retrieval.ACROSS, retrieval.TO_TEXT, "recall_at_1"] < 1


def test_recordings_with_equal_captions_are_equally_right():
    reader = Reader()
    vector = reader.vector("No reduced ejection fraction. Ejection fraction 60%.")
    other = reader.vector("Reduced ejection fraction. Ejection fraction 30%.")
    data = task_data(EF, [vector, vector, other], [60.0, 60.0, 30.0], ["test"] * 3, pooling="mean_l2")
    finding = Retrieval().analyze(study_of(data, resamples=20), reader)
    recall = finding.tables["recall"].set_index(["gallery", "direction", "measure"])
    assert (recall.loc[retrieval.ACROSS]["value"] == 1).all()
    # Chance for two captions, and for three recordings of which two, two and one are right.
    assert recall.loc[(retrieval.ACROSS, retrieval.TO_TEXT, "recall_at_1"), "chance"] == pytest.approx(1 / 2)
    assert recall.loc[(retrieval.ACROSS, retrieval.TO_IMAGE, "recall_at_1"), "chance"] == pytest.approx((2 + 2 + 1) / 9)


@pytest.mark.parametrize("direction", [retrieval.TO_TEXT, retrieval.TO_IMAGE])
def test_ranks_do_not_depend_on_how_many_queries_are_compared_at_once(direction, monkeypatch):
    rng = np.random.default_rng(3)
    captions = tuple(make_caption({"ef": float(ef)}, ()) for ef in rng.integers(50, 58, 30))
    ids, vectors = np.arange(30).astype(str), rng.normal(size=(30, 6))
    recordings = retrieval.CaptionedRecordings(ids, ids, np.full(30, ""), vectors, captions)
    known = {caption.text: rng.normal(size=6) for caption in captions}
    embed = lambda texts: np.stack([known[text] for text in texts])  # noqa: E731
    whole = retrieval.rank(recordings, np.arange(30), embed, direction)
    monkeypatch.setattr(retrieval, "COSINES", 70)
    ranks, _, targets = retrieval.rank(recordings, np.arange(30), embed, direction)
    np.testing.assert_array_equal(ranks, whole[0])
    assert targets == whole[2] == (len(known) if direction == retrieval.TO_TEXT else 30)
    cosines = vectors @ embed([c.text for c in captions]).T
    cosines = cosines if direction == retrieval.TO_TEXT else cosines.T
    same = np.array([[one.text == other.text for other in captions] for one in captions])
    if (
        direction == retrieval.TO_IMAGE
    ):  # By hand: one plus the number of wrong recordings that are nearer than the nearest right one.
        best = np.where(same, cosines, -np.inf).max(axis=1)
        np.testing.assert_array_equal(ranks, 1 + ((cosines >= best[:, None]) & ~same).sum(axis=1))


def test_chance_equals_random_orders():
    rng = np.random.default_rng(0)
    expected = chance_level(np.array([3]), 20)
    ranks = 1 + np.array([np.sort(rng.permutation(20)[:3])[0] for _ in range(20000)])
    for k in (1, 5, 10):
        assert (ranks <= k).mean() == pytest.approx(expected[f"recall_at_{k}"][0], abs=0.015)
    assert ranks.mean() == pytest.approx(expected["median_rank"][0], rel=0.02)
    assert chance_level(np.array([1, 2]), 4)["recall_at_5"].tolist() == [1, 1]


def test_median_rank_equals_numpy():
    rng = np.random.default_rng(0)
    ranks, patients = rng.integers(1, 50, 31), np.array([f"p{n}" for n in range(31)])
    found = score_ranks(ranks, patients, 400, 0)["median_rank"]
    from cardiobench.stats.bootstrap import percentile_interval, resample

    loop = resample(
        lambda weights: {"m": np.array([np.median(np.repeat(ranks, row.astype(int))) for row in weights])},
        patients,
        400,
    )["m"]
    assert (found.low, found.high) == percentile_interval(loop) and found.value == np.median(ranks)


class Negation(Reader):
    """Model with one finding: its sentence and the negation have opposite vectors, or the same if negation is ignored."""

    dim, hears = 2, True

    def vector(self, text):
        if "There is" in text and "reduced" in text:
            denied = "no" in text.split() and self.hears
            return np.array([-1.0, 0.0]) if denied else np.array([1.0, 0.0])
        return np.array([0.0, 1.0])


@pytest.mark.parametrize("hears, expected", [(True, 1.0), (False, 0.0)])
def test_prompts_ask_for_presence_of_finding(hears, expected):
    """Test three recordings with the finding and one without; two equal sentences tie, and a tie is not a correct answer."""
    encoder = Negation()
    encoder.hears = hears
    ef = [30.0, 35.0, 40.0, 65.0]
    pictures = [[1.0, 0.1]] * 3 + [[-1.0, 0.1]]
    finding = Retrieval().analyze(study_of(task_data(EF, pictures, ef, ["test"] * 4)), encoder)
    (row,) = finding.tables["negation"].to_dict("records")
    assert (row["n_with"], row["n_without"], row["value"]) == (3, 1, expected)
    assert row["sentences"] == pytest.approx(-1 if hears else 1)


def test_mildly_reduced_fraction_is_compared_both_ways():
    """Test a case where no caption negates "mildly reduced" and both recordings show it; 45 % is not "reduced"."""
    pictures = [[1.0, 0.1], [1.0, 0.1], [-1.0, 0.1], [1.0, 0.1]]
    data = task_data(EF, pictures, [45.0, 47.0, 65.0, 30.0], ["test"] * 4)
    rows = Retrieval().analyze(study_of(data), Negation()).tables["negation"].set_index("finding")
    mild = rows.loc["mildly reduced ejection fraction"]
    assert (mild["n_with"], mild["n_without"], mild["with"], mild["without"], mild["value"]) == (2, 2, 1, 0.5, 0.75)
    assert (rows.loc["reduced ejection fraction", ["n_with", "n_without"]] == 1).all()


def test_always_answering_yes_scores_one_half():
    encoder = Negation()
    data = task_data(EF, [[1.0, 0.1]] * 6, [30.0, 35, 38, 40, 60, 65], ["test"] * 6)
    (row,) = Retrieval().analyze(study_of(data), encoder).tables["negation"].to_dict("records")
    assert (row["with"], row["without"], row["value"]) == (1, 0, 0.5)


def test_constant_model_finds_nothing():
    deaf = type("Deaf", (Reader,), {"vector": lambda self, text: np.ones(64) / 8})()
    data = pictured(Reader())
    flat = task_data(
        EF, np.ones((40, 64)), data.labels.tolist(), ["test"] * 40, pooling="mean_l2", view=data.rows["view"]
    )
    recall = Retrieval().analyze(study_of(flat), deaf).tables["recall"]
    assert (recall.loc[recall["measure"].str.startswith("recall"), "value"] == 0).all()


def test_unsuitable_models_give_a_reason():
    data = pictured(Reader())
    mute = type("Mute", (), {k: v for k, v in vars(Reader).items() if k != "encode_text" and k[:2] != "__"})()
    with pytest.raises(NotApplicable, match="no text tower"):
        Retrieval().analyze(study_of(data), mute)
    with pytest.raises(NotApplicable, match="1 distinct captions"):
        Retrieval().analyze(study_of(task_data(EF, np.eye(64)[:3], [60.0] * 3, ["test"] * 3)), Reader())


def test_figure_has_bar_per_recall_and_line_per_finding():
    reader = Reader()
    finding = Retrieval().analyze(study_of(pictured(reader)), reader)
    record = AnalysisResult("retrieval", "x", ("x/ef",), finding.values, finding.tables, models=({"name": "m"},))
    drawn = figure.draw(record)
    assert [len(panel.patches) for panel in drawn["recall"].axes] == [6, 6, 3]
    assert len(drawn["negation"].axes[0].get_yticklabels()) == len(finding.tables["negation"]) == 3
