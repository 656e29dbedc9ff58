"""Test output, error messages and exit codes of the command line."""

import contextlib
import csv
import io
import json
import os
import subprocess
import sys

import pandas as pd
import pytest
from PIL import Image

from cardiobench.cli import eval as evaluation
from cardiobench.cli import main as everything
from tests.data import test_cinc as cinc

HEAVY = {
    "torch",
    "datasets",
    "transformers",
    "sklearn",
    "scipy",
    "pandas",
    "evaluate",
    "matplotlib",
    "av",
    "wfdb",
    "rich",
}


def call(module, *line, cwd=None):
    """Run a command in this process; return its output and exit code."""
    main = {"cardiobench.eval": evaluation.main, "cardiobench.cli": everything.main}[module]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd or "."), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(part) for part in line])
        except SystemExit as stop:
            code = stop.code
    return subprocess.CompletedProcess(line, code, out.getvalue(), err.getvalue())


@pytest.mark.parametrize(
    "code",
    [
        "import cardiobench",
        "import cardiobench, cardiobench.cli.main, cardiobench.data, cardiobench.models; cardiobench.cli.main.build_parser()",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code):
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(done.stdout.split())


def test_help_shows_examples():
    done = call("cardiobench.eval", "--help")
    assert done.returncode == 0
    for part in ("accelerate launch", "--predictions", "--allow-missing", "exit code"):
        assert part in done.stdout
    assert "phantom" in call("cardiobench.cli", "--help").stdout


@pytest.mark.parametrize(
    "line, message",
    [
        (
            ["--model", "cardiobench/constant", "--tasks", "ptb_xl_sample/CD"],
            "UnknownName: no task 'ptb_xl_sample/CD'. Did you mean 'ptb_xl_sample/cd'?",
        ),
        (["--model", "nobody-knows-me"], "nobody-knows-me"),
        (["--predictions", "nowhere.csv", "--task", "ptb_xl_sample/cd"], "nowhere.csv"),
        (["--predictions", "nowhere.csv"], "--task is missing"),
        ([], "--model is missing"),
        (["--model", ""], "--model ''"),
        (["--model", "cardiobench/constant", "--seed", "-1"], "--seed '-1'"),
        (["--model", "cardiobench/constant", "--backend", "dusk"], "--backend: no backend 'dusk'. Give loky"),
        (["--model", "cardiobench/constant", "--push"], "Did you mean '--push-to-hub'?"),
        (["--model", "cardiobench/constant", "--output", "json"], "Did you mean '--output-dir'?"),
        (["--models", "cardiobench/constant"], "Did you mean '--model'?"),
        (["--model", "cardiobench/constant", "--task", "tmed2/as"], "For a run, use --tasks tmed2/as."),
        (
            ["--model", "cardiobench/constant", "--tasks", "ptb_xl_sample/cd", "--data-dir", "nowhere"],
            "nowhere does not exist",
        ),
        (["--predictions", "x.csv", "--task", "ptb_xl_sample/cd", "--limit", "3"], "cannot be combined with --limit"),
        (
            ["--model", "cardiobench/constant", "--batch-size", "0"],
            "--batch-size '0': expected a number of at least 1",
        ),
    ],
)
def test_users_mistake_gets_one_message_and_exit_code_2(line, message, tmp_path):
    done = call("cardiobench.eval", *line, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("line", "part"),
    [
        (["list", "--json"], "datasets"),
        (["audit", "ptb_xl_sample", "--no-media", "--json"], "findings"),
        (["doctor", "--model", "cardiobench/constant", "--json"], "tasks"),
    ],
)
def test_json_output_is_not_mixed_with_other_text(line, part):
    done = call("cardiobench.cli", *line)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[part]


def test_references_are_written_and_predictions_are_scored(tmp_path):
    assert call("cardiobench.cli", "references", "ptb_xl_sample/cd", "--out", "refs.csv", cwd=tmp_path).returncode == 0
    refs = pd.read_csv(tmp_path / "refs.csv", dtype=str)
    assert refs["split"].value_counts().to_dict() == {"test": 122, "train": 237, "validation": 34}
    test = refs[refs["split"] == "test"]
    test.assign(y_pred=test["y_true"])[["id", "y_pred"]].to_csv(tmp_path / "perfect.csv", index=False)
    line = ["--predictions", "perfect.csv", "--task", "ptb_xl_sample/cd", "--references", "refs.csv"]
    done = call("cardiobench.eval", *line, cwd=tmp_path)
    assert done.returncode == 0 and "100.00" in done.stdout, done.stderr
    assert (tmp_path / "results" / "predictions" / "perfect" / "ptb_xl_sample__cd.json").is_file()


@pytest.fixture
def perfect(tmp_path):
    """Write the references of the bundled ECGs to `refs.csv`; return perfect predictions for its test split."""
    call("cardiobench.cli", "references", "ptb_xl_sample/cd", "--out", "refs.csv", cwd=tmp_path)
    references = pd.read_csv(tmp_path / "refs.csv", dtype=str)
    test = references[references["split"] == "test"]
    return test.assign(y_pred=test["y_true"])[["id", "y_pred"]]


def test_prediction_files_with_equal_or_unusual_names_keep_separate_results(perfect, tmp_path):
    wrong = perfect.assign(y_pred=[{"CD": "no CD"}.get(label, "CD") for label in perfect["y_pred"]])
    for name, table in (("a/mine.csv", perfect), ("b/mine.csv", wrong), ("...csv", wrong), ("a/mine.csv", perfect)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        table.to_csv(tmp_path / name, index=False)
        line = ["--predictions", name, "--task", "ptb_xl_sample/cd", "--references", "refs.csv", "--resamples", "20"]
        assert call("cardiobench.eval", *line, cwd=tmp_path).returncode == 0
    files = list((tmp_path / "results").rglob("*.json"))
    scores = {path.parent.name: json.loads(path.read_text())["overall"]["f1_macro"]["value"] for path in files}
    assert all(path.parents[1] == tmp_path / "results" / "predictions" for path in files)
    assert scores.pop("mine") == 1 and scores.pop("predictions") == 0
    assert [(name[:5], value) for name, value in scores.items()] == [("mine-", 0)]


@pytest.fixture(scope="module")
def tmed2(shared, tmp_path_factory):
    """Create TMED-2 in its raw layout with the published ids and labels, and one image per kind of study; all other images are missing."""
    raw = tmp_path_factory.mktemp("tmed2")
    base = raw / "approved_users_only"
    (base / "DEV479").mkdir(parents=True)
    pictures = base / "view_and_diagnosis_labeled_set" / "labeled"
    pictures.mkdir(parents=True)
    images = pd.read_csv(shared / "data" / "splits" / "tmed2" / "per_image.csv")
    table = pd.DataFrame(
        {
            "query_key": images["query_key"],
            "view_label": images["view"],
            "diagnosis_label": images["diagnosis_label"].map({0: "no_AS", 1: "severe_AS"}),
            "view_classifier_split": images["split"],
            "diagnosis_classifier_split": images["split"],
            "SourceFolder": "view_and_diagnosis_labeled_set",
        }
    )
    table.to_csv(base / "DEV479" / "TMED2_fold0_labeledpart.csv", index=False)
    table.iloc[:, :3].to_csv(base / "labels_per_image.csv", index=False)
    Image.new("L", (112, 112)).save(pictures / table["query_key"][0])
    return raw


@pytest.mark.slow
def test_published_aortic_stenosis_predictions_are_a_constant(tmed2, shared, tmp_path):
    done = call("cardiobench.cli", "references", "tmed2/as", "--data-dir", tmed2, "--out", "refs.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    published = (
        shared / "golden" / "reference_eval" / "inputs" / "example_predictions" / "TMED2" / "AS" / "modelname.csv"
    )
    line = ["cardiobench.eval", "--task", "tmed2/as", "--references", "refs.csv", "--predictions"]
    done = call(*line, published, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "44.13" in done.stdout and "collapsed" in done.stdout and "no information shown" in done.stdout

    with published.open(newline="") as file:
        rows = list(csv.reader(file))
    dropped = rows.pop(5)
    with (tmp_path / "short.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    done = call(*line, "short.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "118 of the 119" in done.stderr and dropped[0] in done.stderr and "Traceback" not in done.stderr


def test_empty_data_folder_is_reported(tmp_path):
    done = call(
        "cardiobench.eval",
        "--model",
        "cardiobench/constant",
        "--tasks",
        "tmed2/as",
        "--data-dir",
        tmp_path,
        cwd=tmp_path,
    )
    assert done.returncode == 2 and "tmed.cs.tufts.edu" in done.stderr and "Traceback" not in done.stderr


def test_unwritable_output_folder_gives_one_message(tmp_path):
    (tmp_path / "file").write_text("")
    done = call("cardiobench.cli", "phantom", "ptb_xl", "--out", tmp_path / "file" / "twin", "--patients", 1)
    assert done.returncode == 2, "the request is wrong, and no work was lost"
    assert f"{tmp_path / 'file'} is a file, not a folder." in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_run_writes_a_file_that_repeats_it(tmp_path, cli_cache):
    line = ["--model", "cardiobench/constant", "--tasks", "ptb_xl_sample/cd", "--protocols", "knn", "--resamples", "50"]
    done = call("cardiobench.eval", *line, "--cache-dir", cli_cache, "--output-dir", "out", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["results"][0]["collapsed"] and printed["exit_code"] == 0 and "collapsed" in done.stderr
    (result,) = (tmp_path / "out").rglob("ptb_xl_sample__cd.json")
    before = result.read_bytes()
    (file,) = (tmp_path / "out" / "runs").rglob("run.yaml")
    refused = call("cardiobench.cli", "rerun", file)
    assert refused.returncode == 2 and "sets --cache-dir" in refused.stderr and "--output-dir" not in refused.stderr
    again = call("cardiobench.cli", "rerun", file, "--cache-dir", cli_cache)
    assert again.returncode == 0 and result.read_bytes() == before, again.stderr
    elsewhere = call("cardiobench.cli", "rerun", file, "--cache-dir", cli_cache, "--output-dir", tmp_path / "other")
    assert elsewhere.returncode == 0 and (tmp_path / "other" / result.relative_to(tmp_path / "out")).is_file()


@pytest.fixture(scope="session")
def cli_cache(tmp_path_factory):
    """Share one embedding store among all runs of these tests."""
    return tmp_path_factory.mktemp("cache")


def test_dry_run_estimates_costs_and_writes_nothing(tmp_path):
    line = ["--model", "cardiobench/ecg-morphology", "--tasks", "ptb_xl_sample/cd", "--protocols", "knn", "probe"]
    line += ["--cache-dir", "cache", "--output-dir", "out", "--dry-run", "--json"]
    done = call("cardiobench.eval", *line, cwd=tmp_path)
    plan = json.loads(done.stdout)
    (row,) = plan["rows"]
    assert done.returncode == plan["exit_code"] == 0 and row["to_encode"] == 393 and row["cells"] == 2
    assert row["seconds"] > 0 and row["bytes"] > 393 * 4 and row["cached"] == 0
    assert not list(tmp_path.iterdir()) and "the run would start; nothing was written" in done.stderr
    done = call("cardiobench.eval", "--model", "cardiobench/constant", tmp_path, *line[2:], cwd=tmp_path)
    assert done.returncode == 1 and json.loads(done.stdout)["problems"]


@pytest.fixture
def to_encode(tmp_path):
    """Create three Georgia records, two of them known duplicates; return a function that asks how many would be encoded."""
    for name in ("E00001", "E07509", "E07510"):
        cinc.write(tmp_path / "training" / "georgia" / "g1", name, cinc.comments("426783006"))

    def ask(*flags, run=False):
        line = ["--model", "cardiobench/constant", "--tasks", "georgia/cd", "--data-dir", tmp_path, "--allow-missing"]
        line += ["--protocols", "knn", "--cache-dir", tmp_path / "c", "--output-dir", tmp_path / "o"]
        done = call("cardiobench.eval", *line, *flags, *(() if run else ("--dry-run", "--json")))
        return run or json.loads(done.stdout)["rows"][0]["to_encode"]

    return ask


def test_duplicate_records_are_dropped_on_request(to_encode):
    assert to_encode() == 3 and to_encode("--drop-duplicates") == 2


@pytest.mark.slow
def test_change_with_equal_size_and_time_is_detected(to_encode, tmp_path):
    to_encode(run=True)
    for flags in ((), ("--verify",)):
        assert to_encode(*flags) == 0
    file = tmp_path / "training" / "georgia" / "g1" / "E00001.mat"
    status, content = file.stat(), bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert to_encode() == 1 and to_encode("--verify") == 1


def test_version_is_printed():
    done = call("cardiobench.cli", "--version")
    assert done.returncode == 0 and done.stdout.startswith("cardiobench ")
    assert call("cardiobench.eval", "--version").stdout == done.stdout
