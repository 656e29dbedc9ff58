"""Test the examples in the docstrings of the public functions, and what the functions tell their callers."""

import doctest
import inspect
import traceback

import pytest

import cardiobench
from cardiobench.core.errors import BadPredictions, CardioBenchError, MissingData
from cardiobench.core.python_messages import as_arguments
from cardiobench.core.run_options import RunOptions

TASK = "phantom_ecg/af"  # The examples and tests also use phantom_echo and camus.


@pytest.mark.parametrize("name", cardiobench.__all__)
def test_public_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = getattr(cardiobench, name)
    scope = vars(inspect.getmodule(inspect.unwrap(shown))) | {name: shown}
    found = doctest.DocTestFinder(recurse=False).find(inspect.unwrap(shown), name, globs=scope)
    assert sum(len(one.examples) for one in found) > 0
    runner = doctest.DocTestRunner(verbose=False)
    for one in found:
        runner.run(one)
    assert not runner.failures


def test_signature_of_evaluate_names_its_options():
    shown = inspect.signature(cardiobench.evaluate).parameters
    assert set(RunOptions.__annotations__) < set(shown) and "options" not in str(shown["jobs"])
    assert all(one.kind is not inspect.Parameter.VAR_KEYWORD for one in shown.values())
    assert shown["limit"].default is None and shown["cache_dir"].default is ...


def test_misread_ids_are_one_message_without_frames_of_internals():
    references = cardiobench.load_references(TASK)
    test = references[references["split"] == "test"]
    numbers = test.assign(id=range(len(test)), y_pred=test["y_true"])[["id", "y_pred"]]
    with pytest.raises(BadPredictions, match="differ only in spelling") as raised:
        cardiobench.score(numbers, TASK, references)
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert [frame.name for frame in frames] == [
        "test_misread_ids_are_one_message_without_frames_of_internals",
        "wrapped",
    ]
    assert raised.value.__cause__ is None and raised.value.__suppress_context__
    assert raised.value._render_traceback_() == [f"BadPredictions: {raised.value}"]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"data_dir": "/absent"}, "data_dir='/absent' does not exist. Remove the argument"),
        ({"suite": "quick", "protocols": "knn"}, "suite='quick' fixes protocols. Leave these arguments"),
        ({"reuse": "org/results"}, "Name the owners whose results you trust: reuse_from=OWNER"),
    ],
)
def test_messages_in_python_name_arguments(tmp_path, settings, told):
    tasks = {} if "suite" in settings else {"tasks": TASK}
    with pytest.raises(CardioBenchError) as raised:
        cardiobench.evaluate("cardiobench/constant", **tasks, output_dir=tmp_path, **settings)
    assert told in str(raised.value) and "--" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Leave --variant x out.", "Leave variant='x' out."),
        ("Give --prompts the folder, or --jobs 2.", "Give prompts the folder, or jobs=2."),
        (
            "read it, then pass --trust-remote-code (trust_remote_code=True).",
            "read it, then pass trust_remote_code=True.",
        ),
        ("continue with --allow-missing (in Python allow_missing=True).", "continue with allow_missing=True."),
        ("rate (--option probe.c=0.1)", "rate (options=['probe.c=0.1'])"),
        (
            "Run: cardiobench eval --model ID. Or give --model ID.",
            "Run: cardiobench eval --model ID. Or give model=ID.",
        ),
        ("it needs --sheet of adopt", "it needs --sheet of adopt"),
    ],
)
def test_flags_become_arguments_except_in_command_lines(text, told):
    assert as_arguments(text) == told


def test_absent_data_is_told_in_words_of_python(monkeypatch):
    monkeypatch.delenv("CARDIOBENCH_DATA", raising=False)
    with pytest.raises(MissingData, match="give its folder with data_dir or CARDIOBENCH_DATA") as raised:
        cardiobench.load_references("camus/ef")
    assert "cardiobench phantom camus --out camus_twin" in str(raised.value), "a command line keeps its flags"
