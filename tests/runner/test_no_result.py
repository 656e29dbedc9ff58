"""Check that a requested model or task without a result is named with the reason, and gives exit code 1."""

import json
from types import SimpleNamespace

import pytest
import torch

import cardiobench
from cardiobench.cli.main import main
from cardiobench.cli.output import print_summary
from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.core.errors import NoResult
from cardiobench.data import catalog
from cardiobench.models.custom import BaseEncoder
from cardiobench.protocols import list_protocols
from cardiobench.runner.context import RunSummary
from cardiobench.runner.no_result import IN_TABLE, DatasetsOfRun, no_result, requested

ECG, ECHO = "cardiobench/ecg-morphology", "cardiobench/pixel-motion"
TASK = "ptb_xl_sample/cd"
DATASETS = DatasetsOfRun({"ptb_xl_sample": "ecg", "phantom_echo": "echo"}, (), {ECG: ("ecg",), ECHO: ("echo",)})


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Share embeddings and results among the runs of this module."""
    root = tmp_path_factory.mktemp("runs")
    return {"output_dir": root / "results", "cache_dir": root / "cache", "workers": 0, "resamples": 20}


def line(folders, *words):
    return ["eval", *words, "--output-dir", str(folders["output_dir"]), "--cache-dir", str(folders["cache_dir"])]


def test_echo_model_on_an_ecg_task_gives_exit_code_1_and_one_sentence(folders, capsys):
    assert main(line(folders, "--model", ECHO, "--tasks", TASK)) == 1
    said = capsys.readouterr()
    assert "the model takes echo" not in said.out and said.err == (
        f"NoResult: {ECHO} has no result: the model takes echo, and ptb_xl_sample is ecg. "
        f"`cardiobench doctor --model {ECHO}` lists the tasks and protocols that it supports.\n"
    )
    assert main(line(folders, "--model", ECHO, "--tasks", TASK, "--json")) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["exit_code"] == 1 and found["no_result"].startswith(ECHO)
    assert main(line(folders, "--model", ECHO, "--tasks", TASK, "--dry-run")) == 1
    assert f"{ECHO} has no result: the model takes echo" in capsys.readouterr().out
    with pytest.raises(NoResult, match="the model takes echo, and ptb_xl_sample is ecg"):
        cardiobench.evaluate(ECHO, TASK, **folders)


@pytest.mark.parametrize("count", [2, 5])
def test_each_reason_is_printed_once(count, capsys, tmp_path):
    reasons = [f"reason {number}" for number in range(count)]
    summary = RunSummary(not_applicable=[(ECG, TASK, f"probe{n}", f"{text}.") for n, text in enumerate(reasons)])
    summary.no_result = sentence((ECG,), (TASK,), (), summary)
    in_table = [(*row[:3], IN_TABLE) for row in summary.not_applicable]
    summary.no_result_below_table = sentence((ECG,), (TASK,), (), RunSummary(not_applicable=in_table))
    print_summary(Console(), summary, tmp_path)
    said = capsys.readouterr()
    assert [(said.out + said.err).count(one) for one in reasons] == [1] * count
    assert ("the table of what is not applicable has the reasons" in said.err) == (count > 3)


def test_existing_results_answer_a_request_and_other_models_are_named(folders, capsys):
    asked = line(folders, "--model", "cardiobench/constant", "--tasks", TASK, "--protocols", "knn", "--resamples", "20")
    assert main(asked) == 0 and main(asked) == 0, "taken from the first run"
    capsys.readouterr()
    with pytest.warns(UserWarning, match=f"^{ECHO} has no result: the model takes echo"):
        results = cardiobench.evaluate(["cardiobench/constant", ECHO], TASK, "knn", **folders)
    assert [one.model["name"] for one in results] == ["cardiobench/constant"]


class Speaking(BaseEncoder):
    """Encoder of mean grey levels and of the lengths of texts."""

    name = "lab/speaking"
    modalities, logit_scale = ("echo",), 1.0

    def transform(self, recording):
        """Return the mean of each colour."""
        return torch.as_tensor(recording.frames.mean((0, 1, 2)), dtype=torch.float32)[None]

    def encode(self, batch):
        """Return the batch."""
        return batch

    def encode_text(self, texts):
        """Return the length of each text."""
        return torch.tensor([[float(len(text)), 1.0, 0.0] for text in texts])


def test_prompts_without_a_class_give_no_result(folders, tmp_path):
    (tmp_path / "mine.json").write_text('{"version": "1", "view": {"A2C": ["two chambers"]}}')
    settings = {"prompts": tmp_path / "mine.json", "limit": 1, **folders}
    with pytest.raises(
        NoResult, match=r"lab/speaking has no result: .*mine\.json has no prompts for the view .*cardiobench list"
    ):
        cardiobench.evaluate(Speaking(), "phantom_echo/view", "zero_shot", **settings)


@pytest.mark.skipif("cross_validation" not in list_protocols(), reason="its extension is not here")
def test_suite_without_data_here_gives_exit_code_1(folders, capsys):
    assert main(line(folders, "--model", "cardiobench/minirocket", "--suite", "cardiobench_ecg_v1")) == 1
    assert "has no result: there is no data here for ptb_xl, code15, georgia and 1 more. `cardiobench list` says" in (
        capsys.readouterr().err
    )


def sentence(models, tasks, answered, summary=None, **more):
    """Return the sentence about a request for models and tasks, some of which have a result."""
    found = [catalog.task(name) for name in tasks]
    config = RunConfig(models=models, tasks=tasks, **more)
    return no_result(requested(config, found, (), ("probe",)), answered, summary or RunSummary(), DATASETS)


def test_each_requested_model_and_task_needs_a_result():
    both, tasks = (ECG, ECHO), (TASK, "phantom_echo/ef")
    assert sentence(both, tasks, {(ECG, TASK), (ECHO, "phantom_echo/ef")}) == ""
    assert sentence(both, (), {(ECG, TASK), (ECHO, "phantom_echo/ef")}) == ""
    loaded = RunSummary(loaded={ECG: (ECG, ("ecg",))})
    told = sentence((ECG,), tasks, {(ECG, TASK)}, loaded)
    assert (
        told
        == "phantom_echo/ef has no result: no model of this run takes echo. `cardiobench list` lists all tasks and models."
    )
    assert sentence((ECG,), (TASK, "ptb_xl_sample/age"), {(ECG, TASK)}, loaded).startswith(
        "ptb_xl_sample/age has no result: probe gives none on it."
    )


def test_dataset_needs_one_result_and_a_shard_none():
    tasks = [catalog.task(f"ptb_xl_sample/{target}") for target in ("cd", "age")]
    asked = requested(RunConfig(models=(ECG,), tasks=("ptb_xl_sample",)), tasks, (), ("knn",))
    assert asked.tasks == {"ptb_xl_sample": {"ptb_xl_sample/cd", "ptb_xl_sample/age"}}
    assert no_result(asked, {(ECG, TASK)}, RunSummary(), DATASETS) == ""
    assert sentence((ECHO,), (TASK,), (), shard="1/2") == ""


def test_reasons_are_those_of_failures_and_refusals():
    failed = RunSummary(
        failures=[(ECHO, "", "model", "no weights")], not_applicable=[(ECG, TASK, "native", "no heads.")]
    )
    told = sentence((ECHO, ECG), (TASK,), (), failed)
    assert told.startswith(f"{ECHO} has no result: no weights; {ECG} has no result: no heads. `cardiobench doctor")


def test_result_under_the_name_of_the_card_counts():
    assert sentence((ECG.upper(),), (TASK,), {(ECG, TASK)}, RunSummary(loaded={ECG.upper(): (ECG, ("ecg",))})) == ""


def test_analysis_counts_as_a_result():
    analysis = SimpleNamespace(models=[{"name": ECG}], tasks=(TASK, "ptb_xl_sample/age"))
    assert RunSummary(analyses=[analysis]).answered() == {(ECG, TASK), (ECG, "ptb_xl_sample/age")}
