"""What `--profile paper` fills in: the seed, poolings and preprocessing of each model, and what no paper defines."""

from dataclasses import replace

import pytest

from cardiobench.core.config import RunConfig
from cardiobench.data.twin import write_twin
from cardiobench.models.cards import find_card
from cardiobench.models.frames import frame_settings
from cardiobench.models.load import facts_of, load_model
from cardiobench.protocols import protocol
from cardiobench.runner import paper_profile
from cardiobench.runner.paper_profile import apply_profile, model_choices, profile_warning, select_protocols
from cardiobench.runner.plan import resolve_tasks
from cardiobench.runner.run import run

PAPER = RunConfig(models=("a/b",), profile="paper")


def test_the_published_seed_where_none_was_given():
    assert apply_profile(PAPER).seed == 42
    assert apply_profile(RunConfig(models=("a/b",), profile="paper", seed=7)).seed == 7
    assert apply_profile(RunConfig(models=("a/b",))).seed == 0


@pytest.mark.parametrize(
    ("poolings", "variants", "expected"),
    [
        (("mean", "max", "last"), ("filtered", "paper"), [("last", "paper"), ("max", "paper")]),
        (("mean", "cls", "max"), (), [(None, None)]),
        ((), ("echo_clip", "paper"), [(None, "paper")]),
        ((), ("full_frame", "paper", "paper_probe"), [(None, "paper"), (None, "paper_probe")]),
    ],
)
def test_poolings_and_preprocessing_of_the_papers_where_a_model_has_them(monkeypatch, poolings, variants, expected):
    plan = type("Plan", (), {"poolings": poolings, "variants": variants})
    monkeypatch.setattr("cardiobench.models.load.plan_model", lambda name, **_: plan)
    assert model_choices("a/b", PAPER) == expected
    own = RunConfig(models=("a/b",), profile="paper", poolings=("mean",), variant="zscore")
    assert model_choices("a/b", own) == [("mean", "zscore")]
    assert model_choices("a/b", RunConfig(models=("a/b",), poolings=("max", "mean"))) == [("max", None), ("mean", None)]


def test_the_published_probe_has_a_preprocessing_of_its_own():
    """Prompts see cropped BGR frames, the released probe one whole frame in RGB."""
    protocols = [protocol(name, PAPER) for name in ("zero_shot", "probe", "knn")]

    def names(variants, variant):
        return [one.name for one in select_protocols(protocols, variants, variant)]

    assert names(["paper", "paper_probe"], "paper") == ["zero_shot", "knn"]
    assert names(["paper", "paper_probe"], "paper_probe") == ["probe"]
    assert names(["paper"], "paper") == names([""], "") == ["zero_shot", "probe", "knn"]
    card = find_card("mkaichristensen/echo-clip")
    (zero_shot, probe) = (frame_settings(facts_of(card, name), card.id) for name in ("paper", "paper_probe"))
    assert (zero_shot.colour, zero_shot.zoom, zero_shot.sampling.count) == ("BGR", 0.1, 16)
    assert (probe.colour, probe.zoom, probe.sampling.count) == ("RGB", 0, 1)
    assert zero_shot.sampling.nifti == probe.sampling.nifti == "paper"
    assert frame_settings(facts_of(card, "echo_clip"), card.id).sampling.nifti == "canonical"


def test_a_model_whose_published_preprocessing_is_unknown_says_so():
    model = load_model("cardiobench/constant")
    assert profile_warning(model, None, PAPER) is model, "a baseline of this benchmark is in no paper"
    with_weights = paper_profile.replace(model, weight_files={"w": "0"})
    (sentence,) = profile_warning(with_weights, None, PAPER).warnings
    assert "define no preprocessing of cardiobench/constant" in sentence
    assert profile_warning(with_weights, "paper", PAPER) is with_weights


def test_protocols_and_tasks_of_the_papers():
    config = apply_profile(PAPER)
    assert protocol("cross_validation", config).get_params() | {"grids": None} == {
        "sizes": ("XS", "S", "M", "L"),
        "classifiers": ("xgboost", "tree", "forest", "logistic", "mlp"),
        "grids": None,
        "folds": 15,
        "inner": 3,
        "search": "flat",
        "grouped": False,
        "one_a_patient": False,
        "seed": 42,
    }
    assert protocol("knn", config).profile == "paper"
    names = [task.name for task in resolve_tasks(["ptb_xl", "georgia/cd"], "paper")]
    assert names == ["ptb_xl/cd_paper", "georgia/cd"], "a task that is named stays as named"
    own = [task.name for task in resolve_tasks(["ptb_xl"])]
    assert {"ptb_xl/cd", "ptb_xl/af"} <= set(own) and not any(name.endswith("_paper") for name in own)


@pytest.mark.slow
def test_on_one_twin_the_profile_changes_what_the_papers_fix_and_nothing_else(tmp_path):
    """Same patients, same vectors: other labels under another name, and another rule for k."""
    write_twin("georgia", tmp_path / "georgia", patients=80)
    config = RunConfig(
        models=("cardiobench/ecg-morphology",),
        tasks=("georgia/cd",),
        protocols=("knn",),
        data_dir=tmp_path,
        output_dir=tmp_path / "default",
        cache_dir=tmp_path / "cache",
        seed=42,
        resamples=20,
        workers=0,
    )
    paper = replace(config, profile="paper", output_dir=tmp_path / "paper")
    ours, theirs = run(config), run(paper)
    ((knn,), (published,)) = ours.results, theirs.results
    assert published.options["profile"] == "paper" != knn.options["profile"]
    named = {r.task for r in run(replace(paper, tasks=("georgia",), protocols=("knn",))).results}
    assert {"georgia/cd_paper", "georgia/af_paper"} <= named and not named & {"georgia/cd", "georgia/af"}
