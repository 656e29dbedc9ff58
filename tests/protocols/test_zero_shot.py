"""Compare both numeric prompt rules with published outputs and hand-worked values, and classes with the formula."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from cardiobench.core.errors import NotApplicable, UnknownName
from cardiobench.protocols.numeric_prompts import RULES, per_frame_median, rank_mean_median
from cardiobench.protocols.zero_shot import ZeroShot
from tests.protocols.conftest import BINARY, REGRESSION, task_data


@pytest.mark.parametrize("case", ["ef1", "ef16", "ef20", "ivsd16", "lvidd16"])
def test_numeric_rules_equal_the_published_code(root, case):
    golden = np.load(root / "tests" / "golden" / "models" / "prep_regression_decode.npz")
    similarity, values = golden[f"{case}/similarity"], golden[f"{case}/values"]
    assert per_frame_median(similarity, values) == pytest.approx(
        float(golden[f"{case}/cardiobench_per_frame_median"]), abs=1e-4
    )
    assert rank_mean_median(similarity, values) == pytest.approx(
        float(golden[f"{case}/echoclip_rank_mean_median"]), abs=1e-4
    )


def test_rules_by_hand():
    numbers = np.arange(0.0, 100.0, 10.0)
    # Most similar numbers of frame one: 90, 0 (of frame two: 20, 30). One fifth of ten prompts is two; take the lower median.
    similarity = np.zeros((2, 10))
    similarity[0, [9, 0]] = [1.0, 0.9]
    similarity[1, [2, 3]] = [1.0, 0.9]
    assert per_frame_median(similarity, numbers) == (0 + 20) / 2
    # The means by rank are (90 + 20) / 2 = 55 and (0 + 30) / 2 = 15; the lower is 15.
    assert rank_mean_median(similarity, numbers) == 15


class Toy:
    """Model whose text and image space is the plane: a text has the direction given by its number or name."""

    name, modalities, pooling, logit_scale = "toy", ("echo",), "mean_l2", 10.0
    revision, dim, sampling, preprocessing, loaded_by, warnings = "0", 2, None, {}, "", ()
    named = {"sick": (1.0, 0.0), "ill": (0.8, 0.6), "well": (0.0, 1.0)}

    def transform(self, recording): ...

    def encode(self, parts): ...

    def to(self, device):
        return self

    def encode_text(self, texts):
        angle = [np.deg2rad(float(t.split()[-1][:-1]) * 0.9) if t.endswith("%") else None for t in texts]
        return torch.tensor(
            [self.named[t] if a is None else (np.cos(a), np.sin(a)) for t, a in zip(texts, angle, strict=True)],
            dtype=torch.float32,
        )


@pytest.fixture
def prompt_file(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(
        json.dumps(
            {
                "version": "7",
                "as": {"yes": ["sick", "ill"], "no": ["well"]},
                "ef": {"templates": ["EF is <#>%", "about <#>%"]},
            }
        )
    )
    return file


def with_prompts(data, file):
    import dataclasses

    return dataclasses.replace(data, prompts=file)


def test_classes_are_softmax_of_scaled_mean_cosines(prompt_file):
    data = with_prompts(
        task_data(BINARY, [[2.0, 0.0], [0.0, 3.0]], ["yes", "no"], ["test"] * 2, pooling="mean_l2"), prompt_file
    )
    output = ZeroShot().predict(data, Toy(), "")
    # Cosines to (sick, ill | well) are (1, .8 | 0) and (0, .6 | 1), with means .9 and .3.
    expected = [1 / (1 + np.exp(-10 * (0.9 - 0.0))), 1 / (1 + np.exp(-10 * (0.3 - 1.0)))]
    np.testing.assert_allclose(output.values[:, 1], expected, rtol=1e-6)
    assert output.details["prompt_set"] == "7" and output.details["prompt_file"] == "mine.json"
    assert len(output.details["prompt_digest"]) == 16


def test_echoclip_two_class_score_is_mean_cosine_to_positive_prompts(prompt_file):
    """Check cosines to (sick, ill), which are (1, .8) and (0, .6) with means .9 and .3; frames are not pooled, "well" is unused."""
    protocol = ZeroShot(binary_rule="mean_cosine")
    assert protocol.variants(BINARY) == ("", "threshold", "mean_cosine") and "mean_cosine" not in ZeroShot().variants(
        BINARY
    )
    frames = [[[2.0, 0.0], [0.0, 0.5]], [[1.0, 0.0], [3.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]]
    splits, labels = ["test", "train", "train", "test"], ["yes", "yes", "no", "no"]
    data = with_prompts(task_data(BINARY, frames, labels, splits, pooling="mean_l2"), prompt_file)
    output = protocol.predict(data, Toy(), "mean_cosine")
    odds = np.log(output.values[:, 1] / output.values[:, 0]) + output.details["threshold"]
    np.testing.assert_allclose(odds, [10 * 0.6, 10 * 0.9], rtol=1e-6)
    assert 10 * 0.3 < output.details["threshold"] < 10 * 0.9, "between the two training recordings"


@pytest.mark.parametrize("rule", RULES)
def test_image_on_the_text_axis_gets_its_number(prompt_file, rule):
    """Test a similarity symmetric around the true number: the 20 best lie around it; the lower median may be 1 below."""
    truth = [30.0, 55.0, 70.0]
    angle = np.deg2rad(np.array(truth) * 0.9)
    features = [np.tile([np.cos(a), np.sin(a)], (4, 1)) for a in angle]
    data = with_prompts(task_data(REGRESSION, features, truth, ["test"] * 3, pooling="mean_l2"), prompt_file)
    np.testing.assert_allclose(ZeroShot().predict(data, Toy(), rule).values, truth, atol=1.0)


def test_not_applicable_without_text_or_prompts(prompt_file):
    data = task_data(BINARY, [[1.0, 0.0]], ["yes"], ["test"])

    class Blind(Toy):
        encode_text = None

    del Blind.encode_text
    mute = type(
        "Mute", (), {k: v for k, v in vars(Toy).items() if k not in ("encode_text", "__dict__", "__weakref__")}
    )()
    with pytest.raises(NotApplicable, match="no text tower"):
        ZeroShot().predict(with_prompts(data, prompt_file), mute, "")


def test_prompt_set_without_a_class_is_named(tmp_path):
    file = tmp_path / "half.json"
    file.write_text(json.dumps({"version": "1", "as": {"yes": ["sick"]}}))
    data = with_prompts(task_data(BINARY, [[1.0, 0.0]], ["yes"], ["test"]), file)
    with pytest.raises(UnknownName, match="the prompts of toy/as lack no"):
        ZeroShot().predict(data, Toy(), "")


def moved_threshold(odds, labels, splits):
    """Return the threshold with the best macro F1 of train and validation among midpoints of log odds; the middle one on a tie."""
    learned = np.isin(splits, ("train", "validation"))
    cuts = np.unique(odds[learned])
    cuts = (cuts[1:] + cuts[:-1]) / 2
    scores = [f1_score(labels[learned], odds[learned] >= cut, average="macro") for cut in cuts]
    best = [cut for cut, value in zip(cuts, scores, strict=True) if value >= max(scores) - 1e-12]
    return best[len(best) // 2]


@pytest.mark.parametrize("variant", ["threshold", "mean_cosine"])
def test_threshold_maximises_scikit_learn_f1(prompt_file, variant):
    """Shift test recordings two thirds of the way to the other class, so that their best threshold differs."""
    rng, n = np.random.default_rng(4), 60
    sick = np.arange(n) % 3 == 0
    splits = np.array(["train", "train", "validation", "test"] * 15)
    angle = np.where(sick, 0.3, 0.9) + np.where(splits == "test", 0.4, 0.0) + 0.15 * rng.normal(size=n)
    frames = [[[np.cos(one), np.sin(one)], [np.cos(one + 0.1), np.sin(one + 0.1)]] for one in angle]
    labels = np.where(sick, "yes", "no").tolist()
    data = with_prompts(task_data(BINARY, frames, labels, splits.tolist(), pooling="mean_l2"), prompt_file)
    ill, well = np.array([Toy.named["sick"], Toy.named["ill"]]), np.array(Toy.named["well"])
    if variant == "threshold":
        middle = np.stack([np.cos(angle + 0.05), np.sin(angle + 0.05)], axis=1)  # Unit-length mean of both frames.
        odds = 10 * ((middle @ ill.T).mean(axis=1) - middle @ well)
    else:
        odds = 10 * (np.array(frames) @ ill.T).mean(axis=(1, 2))
    output = ZeroShot(binary_rule="mean_cosine").predict(data, Toy(), variant)
    expected = moved_threshold(odds, sick, splits)
    assert output.details["threshold"] == pytest.approx(expected, abs=1e-5)
    assert output.details["calibrated_on"] == 45
    test = splits == "test"
    np.testing.assert_allclose(output.values[:, 1], 1 / (1 + np.exp(expected - odds[test])), atol=1e-5)
    of_test = moved_threshold(odds[test], sick[test], splits[~test][: test.sum()])
    assert abs(of_test - expected) > 0.05


@pytest.mark.parametrize("variant", ["", "threshold", "mean_cosine"])
def test_thresholds_of_refits_are_those_of_the_drawn_patients(prompt_file, variant):
    """Compare with a run on a table in which each drawn recording occurs as often as it was drawn."""
    rng, n = np.random.default_rng(5), 80
    sick, splits = np.arange(n) % 3 == 0, np.array(["train", "train", "validation", "test"] * 20)
    angle = np.where(sick, 0.3, 0.9) + 0.35 * rng.normal(size=n)
    frames = np.array([[[np.cos(one), np.sin(one)]] for one in angle])
    labels = np.where(sick, "yes", "no")
    data = with_prompts(task_data(BINARY, frames, labels.tolist(), splits.tolist(), pooling="mean_l2"), prompt_file)
    made = ZeroShot(binary_rule="mean_cosine", comparison_refits=3, seed=2)
    output = made.predict(data, Toy(), variant)
    if not variant:
        assert output.refits == output.drawn == () and not made.reads_training(variant)
        return
    assert len(output.refits) == len(output.drawn) == 3 and output.drawn_with == 2
    assert len({float(values[0, 1]) for values in output.refits}) > 1, "thresholds vary"
    for values, rows in zip(output.refits, output.drawn, strict=True):
        # The thresholds that are tried are those between all recordings.
        rows = np.concatenate([rows, data.indices("test")])
        again = task_data(BINARY, frames[rows], labels[rows].tolist(), splits[rows].tolist(), pooling="mean_l2")
        alone = replace(made, comparison_refits=0).predict(with_prompts(again, prompt_file), Toy(), variant)
        calls, expected = values[:, 1] >= 0.5, alone.values[:, 1] >= 0.5
        assert (calls != expected).mean() <= 0.1
    assert replace(made, comparison_refits=0).predict(data, Toy(), variant).refits == ()
