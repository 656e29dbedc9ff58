"""Check that invalid or hostile paths, numbers and names give one message without a traceback in every command."""

import argparse
import errno
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

import cardiobench
from cardiobench.cli.entry import guarded
from cardiobench.cli.flags import Parser
from cardiobench.cli.main import build_parser, main
from cardiobench.core.errors import CardioBenchError
from cardiobench.core.io import _host, files_below, remove_orphans
from cardiobench.data import catalog
from cardiobench.data.examine import examine
from cardiobench.report.plots.draw import draw_report
from cardiobench.results.collect import collect
from tests.features import stated
from tests.report import example_results

ECG = "--model cardiobench/constant --tasks ptb_xl_sample/cd --protocols knn --limit 4 --resamples 20 --workers 0 --dry-run"
LINES = {
    "cache": "cache list",
    "eval": f"eval {ECG} --output-dir out",
    "audit": "audit ptb_xl_sample",
    "compare": "compare good",
    "completion": "completion bash",
    "doctor": "doctor --model cardiobench/constant",
    "leaderboard": "leaderboard good --write-space board",
    "list": "list --models",
    "merge": "merge good --out merged",
    "phantom": "phantom ptb_xl --out twin --patients 1",
    "prepare": "prepare ptb_xl_sample --out prepared",
    "prompts": "prompts camus/ef --out prompts.json",
    "publish": "publish models cardiobench/constant",
    "pull": "pull org/model",
    "push": "push good --to org/model",
    "references": "references ptb_xl_sample/cd --out references.csv",
    "report": "report good --out page",
    "rerun": "rerun run.yaml",
    "verify": "verify org/data --revision main",
}
"""One line per command of the core, whose arguments are replaced in turn; `demo` starts processes and has its own tests."""
LINES |= {line.split()[0]: line for lines in stated("command_lines").values() for line in lines}
PATHS = ("a\0b", "empty", "cut.json", "cut.csv", "cut.parquet", "x.zip", "folder", "loop", "dangling", "result.json")
PATHS += ("empty/below", "/dev/null", "", "x" * 300, os.fsdecode(b"\xff\xfe"), "hostile", "/proc/nowhere/x")
NUMBERS = ("-1", "9" * 40, "1e3", "1_0", "\N{ARABIC-INDIC DIGIT ONE}", "nan", "")
NAMES = (
    "",
    "a\0b",
    "../..",
    "a/b/c/d",
    "\N{COLLISION SYMBOL}",
    "x" * 5000,
    "/",
    " ",
    "-1",
    "os:system",
    "%s",
    "\ud800",
)
METAVARS = {"DIR", "FILE", "PATH", "FOLDER", "RESULTS"}
COUNTS = {"N", "B", "S", "MB", "P", "I/N"}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """Change to a folder with valid results and everything in `PATHS`."""
    root = tmp_path_factory.mktemp("place")
    result = example_results.write_result(root / "good")
    shutil.copy(result, root / "result.json")
    draw_report(collect([root / "good"]), root / "page")  # No argument changes them, so that `report` keeps them.
    for name, content in {
        "empty": "",
        "cut.json": '{"schema": 3,',
        "cut.csv": 'id,y_pred\n"a',
        "cut.parquet": "PAR1",
    }.items():
        (root / name).write_text(content)
    (root / "x.zip").write_bytes(b"PK\x03\x04")
    (root / "folder").mkdir()
    (root / "loop").symlink_to("loop")
    (root / "dangling").symlink_to("nowhere")
    hostile = root / "hostile"
    (hostile / "set").mkdir(parents=True)
    (hostile / "set" / "builder.py").write_text("raise KeyError('x')")
    (hostile / "a__b.json").write_text("{")
    (hostile / "a__b.md").write_text("---\n[")
    (hostile / "config.json").write_text("[]")
    return root


@cache
def commands():
    parser = build_parser()
    return next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction)).choices


@cache
def starts():
    """Return (command, argument) -> 0 or 1, the first of its values; the next command with this argument starts at the other."""
    first, found = {}, {}
    for command in filter(commands().__contains__, LINES):
        for action in commands()[command]._actions:
            first[action.dest] = first.get(action.dest, len(first)) + 1
            found[command, action.dest] = first[action.dest] % 2
    return found


def variants(command):
    """Yield command lines in which one argument is replaced, by every second value; `starts` says where the others are."""
    arguments = [one for one in commands()[command]._actions if one.nargs != 0]
    actions = [one for one in arguments if not one.choices]
    places = [one for one in arguments if not one.option_strings]
    for action in actions:
        is_path = action.type is Path or action.metavar in METAVARS
        values = PATHS if is_path else NUMBERS if action.metavar in COUNTS or action.dest in ("seed", "port") else NAMES
        for value in values[starts()[command, action.dest] :: 2]:
            line = LINES[command].split()
            if action.option_strings:
                flag = action.option_strings[-1]
                if flag in line:
                    line[line.index(flag) + 1 :] = [value, *line[line.index(flag) + 2 :]]
                else:
                    line.append(f"{flag}={value}")
            else:
                line[1 + places.index(action) : 2 + places.index(action)] = [value]
            yield line


def test_all_commands_are_tested():
    assert set(commands()) - {"demo"} <= set(LINES)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("command", [name for name in LINES if name in commands()])
def test_arbitrary_arguments_give_one_message(command, damaged, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("CARDIOBENCH_CACHE", str(tmp_path / "cache"))
    # Eight recordings are enough for `audit`, whose arguments are tested here and not its remarks.
    monkeypatch.setattr("cardiobench.data.audit.examine", lambda names, *more: examine(names[:8], *more))
    for name in ("CARDIOBENCH_DATASETS_DIR", "CARDIOBENCH_MODELS_DIR"):
        monkeypatch.setenv(name, "")
    fell = []
    for number, line in enumerate(variants(command)):
        work = shutil.copytree(damaged, tmp_path / str(number), symlinks=True)
        monkeypatch.chdir(work)
        for name in ("CARDIOBENCH_DATASETS_DIR", "CARDIOBENCH_MODELS_DIR"):
            monkeypatch.setenv(name, "")
        try:
            code = main(line)
        except SystemExit as stop:
            code = stop.code
        except BaseException as error:  # noqa: BLE001 - whatever else comes out is what is looked for
            fell.append(f"{[word[:60] for word in line]}: {type(error).__name__}: {str(error)[:200]}")
            continue
        said = capsys.readouterr()
        # Failures among other work, real or predicted by a dry run, are in the output.
        silent = not said.err.strip() and not any(words in said.out for words in ("FAILED", "would fail"))
        if code not in (0, 1, 2) or (code and silent) or "Traceback" in said.err or "\x1b" in said.err:
            fell.append(f"{[word[:60] for word in line]}: exit code {code}: {said.err[-200:]!r}")
        shutil.rmtree(work)
    assert not fell, "\n".join(fell)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (MemoryError(), 1, "OutOfMemory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), 1, "OutOfMemory"),
        (RuntimeError("can't start new thread"), 1, "OutOfMemory"),
        (ImportError("x.so: failed to map segment from shared object"), 1, "OutOfMemory"),
        (FileNotFoundError(errno.ENOENT, "No such file", "gone.json"), 1, "gone.json does not exist, or was removed"),
        (FileExistsError(errno.EEXIST, "File exists", "out"), 1, "out: File exists"),
        (ConnectionResetError(errno.ECONNRESET, "reset by peer"), 1, "ConnectionResetError: reset by peer"),
        (CardioBenchError("a\x1b[2Jb"), 2, r"a\x1b[2Jb"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_system_errors_give_one_message(error, code, message, capsys):
    def fail(arguments):
        raise error

    assert guarded(Parser, [], fail) == code
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_defect_keeps_its_traceback():
    with pytest.raises(KeyError):
        guarded(Parser, [], lambda arguments: {}["defect"])


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [1500, 2500])
def test_insufficient_memory_gives_one_message(megabytes, tmp_path):
    line = f"ulimit -v {megabytes * 1024}; exec {sys.executable} -m cardiobench.cli {LINES['eval']}"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, check=False, env=environment)
    assert done.returncode in (0, 1, 2) and b"Traceback" not in done.stderr, done.stderr[-500:]


@pytest.mark.slow
@pytest.mark.parametrize("line", ["list --models", "doctor --model cardiobench/constant"])
def test_closed_pipe_ends_quietly(line, tmp_path):
    shell = f"PYTHONUNBUFFERED=1 {sys.executable} -m cardiobench.cli {line} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 141 and not done.stderr


@pytest.mark.parametrize("process", ["9" * 23, str(2**31), str(2**63)])
def test_temporary_file_of_an_impossible_process_is_an_orphan(tmp_path, process):
    path = tmp_path / f".x.json.{_host()}-{process}-abcd.tmp"
    path.write_text("")
    assert remove_orphans(tmp_path) == [path] and not path.exists()


def test_vanished_folders_are_skipped(tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x__y.json").write_text("{}")
    walk = os.scandir

    def vanish(folder):
        if str(folder).endswith("b"):
            shutil.rmtree(folder)
        return walk(folder)

    monkeypatch.setattr(os, "scandir", vanish)
    assert [path.parent.name for path in files_below(tmp_path, "*__*.json")] == ["a", "c"]


TASK = "phantom_ecg/cd"


def tables():
    truth = example_results.truth(catalog.task(TASK), n=40)
    return truth, example_results.answers(catalog.task(TASK), truth, 0.9, 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda truth, answers: cardiobench.load_dataset(None),
        lambda truth, answers: cardiobench.load_dataset(7),
        lambda truth, answers: cardiobench.load_dataset("tmed2", "a\0b"),
        lambda truth, answers: cardiobench.load_dataset("tmed2", 5),
        lambda truth, answers: cardiobench.load_dataset("ptb_xl_sample", split="tset"),
        lambda truth, answers: cardiobench.score(answers, None, truth),
        lambda truth, answers: cardiobench.score(answers, ["camus/ef"], truth),
        lambda truth, answers: cardiobench.score(None, TASK, truth),
        lambda truth, answers: cardiobench.score({"id": ["a"]}, TASK, truth),
        lambda truth, answers: cardiobench.score(answers.to_numpy(), TASK, truth),
        lambda truth, answers: cardiobench.score(answers, TASK, None),
        lambda truth, answers: cardiobench.score(pd.concat([answers, answers.iloc[:, -1:]], axis=1), TASK, truth),
        lambda truth, answers: cardiobench.score(answers, TASK, pd.concat([truth, truth.iloc[:, :1]], axis=1)),
        lambda truth, answers: cardiobench.score(answers.assign(p_CD="0_1"), TASK, truth),
        lambda truth, answers: cardiobench.score(answers.assign(p_CD="\N{ARABIC-INDIC DIGIT ONE}"), TASK, truth),
        lambda truth, answers: cardiobench.score(answers.assign(p_CD=1j), TASK, truth),
        lambda truth, answers: cardiobench.score(answers, TASK, truth, resamples=10**7),
        lambda truth, answers: cardiobench.score(answers, TASK, truth, resamples=-1),
        lambda truth, answers: cardiobench.score(answers, TASK, truth, resamples="many"),
        lambda truth, answers: cardiobench.score(answers, TASK, truth, resamples=0),
        lambda truth, answers: cardiobench.score(answers, TASK, truth, resamples=True),
        lambda truth, answers: cardiobench.compare(answers, answers, TASK, truth, resamples=0),
        lambda truth, answers: cardiobench.score(answers, TASK, truth, seed=-1),
        lambda truth, answers: cardiobench.compare(answers, answers, TASK, truth, resamples=10**9),
        lambda truth, answers: cardiobench.compare(answers, None, TASK, truth),
        lambda truth, answers: cardiobench.score(answers, TASK, truth, resample=5),
        lambda truth, answers: cardiobench.score(answers, TASK, truth, metrics=[3]),
        lambda truth, answers: cardiobench.score(answers, TASK, truth, model_name=3),
        lambda truth, answers: cardiobench.score(answers, TASK, truth, protocol_name=["probe"]),
        lambda truth, answers: cardiobench.score(answers, TASK, truth, seen_in_pretraining=3),
        lambda truth, answers: cardiobench.score(answers, TASK, truth, seen_in_pretraining=[3]),
        lambda truth, answers: cardiobench.load_references(TASK, [1]),
        lambda truth, answers: cardiobench.compare(answers, answers, TASK, truth, resample=5),
        lambda truth, answers: cardiobench.compare(answers, answers, TASK, truth, metric=3),
        lambda truth, answers: cardiobench.load_metric(None),
        lambda truth, answers: cardiobench.evaluate(None),
        lambda truth, answers: cardiobench.evaluate([]),
        lambda truth, answers: cardiobench.evaluate(dict, TASK),
        lambda truth, answers: cardiobench.evaluate("cardiobench/constant", TASK, output_dir="a\0b"),
        lambda truth, answers: cardiobench.evaluate("cardiobench/constant", TASK, workers=10**5),
        lambda truth, answers: cardiobench.evaluate("cardiobench/constant", TASK, limit=10**30),
    ],
)
def test_invalid_python_arguments_give_one_message(call):
    with pytest.raises(CardioBenchError):
        call(*tables())


def test_references_do_not_overwrite_other_files(tmp_path, capsys):
    file = tmp_path / "thesis.csv"
    line = ["references", "ptb_xl_sample/cd", "--out", str(file)]
    for content in ("id,notes\n1,a\n", "", "PK\x03\x04"):
        file.write_text(content)
        assert main(line) == 2 and "is not a table of references" in capsys.readouterr().err
        assert file.read_text() == content
    file.unlink()
    assert main(line) == 0 and main(line) == 0, "references are written again"


@pytest.mark.parametrize("line", [f"eval {ECG}", "doctor --model cardiobench/constant"])
def test_unavailable_device_gives_one_line(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert main([*line.split(), "--device", "cuda"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "--device is cuda" in said and "only cpu" in said


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("eval --models x --tasks camus/ef", "Did you mean '--model'?"),
        ("eval --protocol knn --model x", "Did you mean '--protocols'?"),
        ("eval --model x --task camus/ef", "For a run, use --tasks camus/ef."),
        ("eval --task camus/ef", "For a run, use --tasks camus/ef."),
        ("eval --model x --devise cpu", "Did you mean '--device'?"),
        ("eval --model x --device cud", "--device: 'cud' is not one of auto, cpu, cuda, mps"),
        ("push r --too a/b", "no flag '--too'. Did you mean '--to'?"),
        ("lst", "no command 'lst'. Did you mean 'list'?"),
        ("publish dataset", "'dataset' is not one of datasets"),
        ("eval --model x --option prob.refits=2", "no protocol 'prob'. Did you mean 'probe'?"),
        ("eval --model x --option refits=2", "--option: 'refits=2' is not PROTOCOL.OPTION=VALUE"),
        ("eval --model x --backend dsk", "--backend: no backend 'dsk'. Give loky, ray"),
        ("eval --model x --profile papr", "no profile 'papr'."),
        ("eval --config nowhere.yaml", "there is no file nowhere.yaml. Give a file of settings"),
        ("eval --predictions x.csv --tasks camus/ef", "Name the task of the predictions with --task."),
        ("eval --predictions x.csv", "--task is missing. Give the task of the predictions."),
        ("list extra", "unexpected argument 'extra'.\n"),
        ("doctor org/x", "unexpected argument 'org/x'. A model follows --model."),
        ("help", "no command 'help'."),
        ("--modle x", "no flag '--modle'."),
        ("report x --examples camus/eff tmed2/ass", "'camus/ef'? No task 'tmed2/ass'. Did you mean 'tmed2/as'?"),
        (
            "eval --model x --condition leeds=I rounde",
            "No condition 'rounde'.",
        ),
        ("publish datasets ptbxl tmed", "'ptb_xl'? No dataset 'tmed'. Did you mean 'tmed2'?"),
        ("eval --model a b --tasks ptb_xl_sample/cd", "no model 'a'. No model 'b'. Known: "),
        ("doctor --model x --dataset y", "--model cannot be combined with --dataset"),
        (
            "eval --model cardiobench/constant --suite quick --tasks camus/ef",
            "fixes tasks. Leave these flags or the suite out.",
        ),
        ("report x --examples camus/eff", "no task 'camus/eff'. Did you mean 'camus/ef'?"),
        ("completion bsh", "'bsh' is not one of bash"),
    ],
)
def test_close_matches_and_choices_are_suggested(line, answer, capsys):
    try:
        code = main(line.split())
    except SystemExit as stop:
        code = stop.code
    assert code == 2 and answer in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            f"eval {ECG} --output-dir cut.csv",
            "cut.csv is a file, not a folder. Choose another folder with --output-dir.",
        ),
        ("report good --layout latex --out cut.csv", "cut.csv is a file, not a folder. Choose another folder."),
        ("prepare ptb_xl_sample --out cut.csv", "cut.csv is a file, not a folder. Choose another folder."),
        ("eval --model ./folder --tasks ptb_xl_sample/cd", "folder: folder has no files. Give a folder with weights"),
        ("eval --config typo.yaml", "no setting of typo.yaml 'modelz'. Did you mean 'models'?"),
        ("audit camus --data-dir folder", "nor in folder (which is empty) (no"),
        ("phantom camus --out cut.csv", "cut.csv is a file, not a folder. Choose another folder."),
        ("cache verify --cache-dir nowhere", "there is no folder nowhere. Check --cache-dir."),
    ],
)
def test_mistake_names_its_place_and_the_next_action(damaged, monkeypatch, capsys, line, words):
    monkeypatch.chdir(damaged)
    (damaged / "typo.yaml").write_text("modelz: org/net\n")
    assert main(line.split()) != 0
    told = " ".join(capsys.readouterr().err.split())
    assert words in told and "Traceback" not in told, told
