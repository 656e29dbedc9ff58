"""Check that the command line asks what a user's model saw in pretraining, and that results state the answer."""

from dataclasses import replace

import pytest

from cardiobench.api import evaluate
from cardiobench.cli.main import main
from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig, UnknownName
from cardiobench.data import catalog
from cardiobench.runner.pretraining import ask_statement, check_statement
from cardiobench.scoring.external_model import is_among_seen

TASK = "ptb_xl_sample/cd"
CODE = """
import torch
from cardiobench import BaseEncoder
from cardiobench.data.media import Ecg
class Spread(BaseEncoder):
    name = "lab/spread"
    def transform(self, recording: Ecg) -> torch.Tensor:
        return torch.from_numpy(recording.signal.std(axis=0))[None]
    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        return parts
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "mine.py").write_text(CODE)
    return f"{tmp_path / 'mine.py'}:Spread"


def test_statement_is_asked_for_each_form_of_a_users_model(own, tmp_path):
    (tmp_path / "vectors.csv").write_text("id,v0\n1,2\n")
    config = RunConfig(models=("cardiobench/constant",), tasks=(TASK,))
    ask_statement(config)
    forms = (
        ({"models": (own, "cardiobench/constant")}, "mine.py:Spread"),
        ({"models": (), "embeddings": tmp_path / "vectors.csv"}, "vectors"),
        ({"models": (), "embeddings": tmp_path / "vectors.csv", "model_name": "lab/net"}, "lab/net"),
    )
    for settings, name in forms:
        asking = replace(config, **settings)
        with pytest.raises(BadConfig, match=rf"{name} has no card .* --seen-in-pretraining none"):
            ask_statement(asking)
        ask_statement(replace(asking, seen_in_pretraining=("none",)))
        ask_statement(replace(asking, seen_in_pretraining=("ptb_xl", "ptb_xl_sample")))
        ask_statement(replace(asking, tasks=("phantom_ecg",)))


def test_other_forms_of_a_dataset_that_was_seen_are_seen():
    forms = ("ptb_xl", "ptb_xl_500", "ptb_xl_sample")
    if not set(forms) <= set(catalog.list_datasets()):
        pytest.skip("without PTB-XL")
    for one in forms:
        assert all(is_among_seen(other, [one]) for other in forms)
        assert is_among_seen("georgia", [one]) is False and is_among_seen(one, "none") is False


def test_wrong_statements_are_refused(own):
    config = RunConfig(models=(own,), tasks=(TASK,), seen_in_pretraining=("ptbxl",))
    with pytest.raises(UnknownName, match="ptb_xl"):
        check_statement(config)
    with pytest.raises(BadConfig, match="'none' cannot be combined with ptb_xl"):
        check_statement(replace(config, seen_in_pretraining=("none", "ptb_xl")))
    with pytest.raises(BadConfig, match="is for models without a card, and cardiobench/constant have one"):
        check_statement(replace(config, models=("cardiobench/constant",), seen_in_pretraining=("none",)))
    with pytest.raises(BadConfig, match="seen_in_pretraining is for models without a card"):
        evaluate("cardiobench/constant", [TASK], protocols="probe", seen_in_pretraining=["none"])


def test_command_line_asks_before_any_work(own, tmp_path, capsys):
    line = ["eval", "--model", own, "--tasks", TASK, "--output-dir", str(tmp_path / "out")]
    for more in ([], ["--dry-run"]):
        assert main([*line, *more]) == 2
        said = capsys.readouterr().err
        assert "--seen-in-pretraining" in said and "Traceback" not in said
    assert not (tmp_path / "out").exists()


def test_changed_statement_is_in_the_result(own, tmp_path):
    folders = {"output_dir": tmp_path / "out", "cache_dir": tmp_path / "cache"}
    common = {"protocols": ("knn",), "limit": 60, "resamples": 20, "workers": 0, "jobs": 1, **folders}
    said, keys, scores = [], set(), set()
    for seen in ("none", "ptb_xl_sample", "ptb_xl", ()):
        (result,) = evaluate(own, TASK, seen_in_pretraining=seen, **common)
        said.append(result.seen_in_pretraining)
        keys.add(result.stamp["key"])
        scores.add(result.score.value)
    assert said == [False, True, True, True] and len(keys) == len(scores) == 1


def test_statement_leaves_models_with_a_card_as_they_are(own, tmp_path):
    folders = {"output_dir": tmp_path / "out", "cache_dir": tmp_path / "cache"}
    common = {"protocols": ("knn",), "limit": 60, "resamples": 20, "workers": 0, "jobs": 1, **folders}
    results = evaluate([own, "cardiobench/constant"], TASK, seen_in_pretraining="ptb_xl_sample", **common)
    assert {one.model["name"]: one.seen_in_pretraining for one in results} == {
        "lab/spread": True,
        "cardiobench/constant": False,
    }
