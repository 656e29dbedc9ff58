"""Test the settings of `--profile paper`: seed, poolings and preprocessing of each model, and values that no paper defines."""

from dataclasses import replace

import pytest

from cardiobench.core.config import RESAMPLES, RunConfig
from cardiobench.data import catalog
from cardiobench.data.twin import write_twin
from cardiobench.hub.outgoing import public_result
from cardiobench.hub.results_dataset import predictions_path
from cardiobench.hub.submission import without_additions
from cardiobench.leaderboard.verify import check
from cardiobench.models.cards import find_card
from cardiobench.models.frames import frame_settings
from cardiobench.models.load import load_model
from cardiobench.protocols import list_protocols, protocol
from cardiobench.protocols.profile import find_profile
from cardiobench.results.collect import ResultEntry
from cardiobench.runner.plan import resolve_tasks
from cardiobench.runner.run import run
from tests.hub.results import sent_predictions

PAPER = RunConfig(models=("a/b",), profile="paper")
PROFILE, DEFAULT = find_profile("paper"), find_profile("default")
ALL = ("zero_shot", "probe", "knn")


def choices(profile, config, names=ALL):
    """Return pooling, variant and protocol names."""
    found = profile.model_choices("a/b", config, [protocol(name, config) for name in names])
    return [(pooling, variant, *(one.name for one in chosen)) for pooling, variant, chosen in found]


def test_published_seed_is_the_default():
    assert PROFILE.apply(PAPER).seed == 42
    assert PROFILE.apply(RunConfig(models=("a/b",), seed=7)).seed == 7
    assert DEFAULT.apply(RunConfig(models=("a/b",))).seed == 0


@pytest.mark.parametrize(
    ("poolings", "variants", "expected"),
    [
        (("mean", "max", "last"), ("filtered", "paper"), [("last", "paper", *ALL), ("max", "paper", *ALL)]),
        (("mean", "cls", "max"), (), [(None, None, *ALL)]),
        ((), ("echo_clip", "paper"), [(None, "paper", *ALL)]),
        (
            (),
            ("full_frame", "paper", "paper_probe"),
            [(None, "paper", "zero_shot", "knn"), (None, "paper_probe", "probe")],
        ),
    ],
)
def test_paper_poolings_and_preprocessing(monkeypatch, poolings, variants, expected):
    plan = type("Plan", (), {"poolings": poolings, "variants": variants})
    monkeypatch.setattr("cardiobench.models.load.plan_model", lambda name, **_: plan)
    assert choices(PROFILE, PAPER) == expected
    own = replace(PAPER, poolings=("mean",), variant="zscore")
    assert choices(PROFILE, own) == [("mean", "zscore", *ALL)]
    both = replace(PAPER, poolings=("max", "own"))
    assert [choice[:2] for choice in choices(DEFAULT, both)] == [("max", None), (None, None)]


def test_variant_without_a_protocol_of_the_run_is_left_out(monkeypatch):
    plan = type("Plan", (), {"poolings": (), "variants": ("paper", "paper_probe")})
    monkeypatch.setattr("cardiobench.models.load.plan_model", lambda name, **_: plan)
    assert choices(PROFILE, PAPER, ("probe",)) == [(None, "paper_probe", "probe")]


def test_published_probe_has_own_preprocessing():
    """Check that prompts use cropped BGR frames, and the released probe one whole frame in RGB."""
    card = find_card("mkaichristensen/echo-clip")
    (zero_shot, probe) = (frame_settings(card.stated(name), card.id) for name in ("paper", "paper_probe"))
    assert (zero_shot.colour, zero_shot.zoom, zero_shot.sampling.count) == ("BGR", 0.1, 16)
    assert (probe.colour, probe.zoom, probe.sampling.count) == ("RGB", 0, 1)
    assert zero_shot.sampling.nifti == probe.sampling.nifti == "paper"
    assert frame_settings(card.stated("echo_clip"), card.id).sampling.nifti == "canonical"


def test_unknown_published_preprocessing_is_reported():
    model = load_model("cardiobench/constant")
    assert PROFILE.with_warning(model, None) is model, "no paper contains a baseline of this benchmark"
    with_weights = replace(model, weight_files={"w": "0"})
    (sentence,) = PROFILE.with_warning(with_weights, None).warnings
    assert "define no preprocessing of cardiobench/constant" in sentence
    assert PROFILE.with_warning(with_weights, "paper") is DEFAULT.with_warning(with_weights, None) is with_weights


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cross_validation", {"folds": 15, "search": "flat", "grouped": False, "one_a_patient": False, "seed": 42}),
        ("representation", {"folds": 15, "profile": "paper"}),
        ("stress", {"kinds": ("shuffle",), "patients": None}),
        ("probe", {"profile": "paper", "seed": 42}),
        ("knn", {"profile": "paper", "seed": 42}),
    ],
)
def test_options_of_the_papers(name, expected):
    if name not in list_protocols():
        pytest.skip(f"no installed extension provides {name}")
    assert protocol(name, PROFILE.apply(PAPER)).get_params().items() >= expected.items()


def test_option_of_the_user_wins_over_the_profile():
    config = replace(PAPER, options={"probe": {"seed": 4}})
    assert protocol("probe", config) == protocol("probe", seed=4, profile="paper")
    assert protocol("probe", config, profile="default").profile == "default"


def test_tasks_of_the_papers():
    names = [task.name for task in resolve_tasks(["ptb_xl", "georgia/cd"], "paper")]
    assert names == ["ptb_xl/cd_paper", "georgia/cd"], "an explicitly named task is unchanged"
    own = [task.name for task in resolve_tasks(["ptb_xl"])]
    assert {"ptb_xl/cd", "ptb_xl/af"} <= set(own) and not any(name.endswith("_paper") for name in own)


@pytest.mark.slow
def test_profile_changes_only_settings_of_the_papers(tmp_path):
    """Check that patients and vectors are equal; only labels (under another name) and the choice of k differ."""
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


@pytest.mark.slow
@pytest.mark.parametrize("task", ["echonet_pediatric/ef", "tmed2/as"])
def test_result_is_verified_by_the_definitions_options_and_seed_of_its_profile(task, tmp_path):
    """Check age groups, selected views and the choice of k, which follow from the profile in the stamp."""
    name = task.partition("/")[0]
    write_twin(name, tmp_path / name, patients=40)
    config = RunConfig(
        models=("cardiobench/pixel-motion",),
        tasks=(task,),
        protocols=("knn",),
        profile="paper",
        data_dir=tmp_path,
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
        resamples=RESAMPLES,
        workers=0,
    )
    (result,) = run(config).results
    (answers,) = (tmp_path / "results").rglob("*.predictions.parquet")
    groups = {*result.groups, *(one.partition("=")[0] for one in result.skipped_groups)}
    assert ("bmi" in groups) == (name == "echonet_pediatric") and "bmi_for_age" not in groups

    def problems(claimed):
        claimed = without_additions(claimed)
        entry = ResultEntry(answers, public_result(claimed), pushed_by="bob")
        return check(
            entry, {predictions_path(claimed, "bob"): sent_predictions(answers, catalog.task(claimed.task))}, tmp_path
        ).problems

    assert problems(result) == ("a synthetic twin", "run with the definitions of --profile paper")
    plain = {name: value for name, value in result.stamp.items() if name != "profile"}
    found = problems(replace(result, stamp=plain))
    assert "options profile: 'paper' claimed, 'default' scored again" in found, "those of the benchmark differ"
    assert any("seed 42" in sentence for sentence in found)
