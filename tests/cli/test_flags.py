"""Test flags: one per settings field, no abbreviations, and suggestions for unknown flags."""

import argparse
from dataclasses import fields

import pytest

from cardiobench.cli.eval import build_parser, read_settings
from cardiobench.cli.main import build_parser as build_all
from cardiobench.core.config import RunConfig, ScoreConfig, flag_of

# Flags that users have in their scripts. Removing one needs a message.
SPELLINGS = """--model --tasks --protocols --prompts --profile --pooling --option --revision --weights
--variant --trust-remote-code --list --data-dir --allow-missing --limit --output-dir --cache-dir --batch-size --workers
--precision --seed --resamples --overwrite --push-to-hub --backend --jobs --predictions --task
--references --metrics""".split()


def settings(*line):
    return read_settings(build_parser().parse_args(line))


def test_every_setting_has_a_flag_and_keeps_its_spelling():
    text = build_parser().format_help()
    for kind in (RunConfig, ScoreConfig):
        for field in fields(kind):
            assert f"  {flag_of(kind, field.name)} " in text
    for flag in SPELLINGS:
        assert f"  {flag}" in text


def test_list_flags_take_several_values_and_can_be_repeated():
    config = settings("--model", "a", "b", "--tasks", "x/y", "--model", "c", "--option", "knn.folds=3", "probe.c=1")
    assert config.models == ("a", "b", "c") and config.tasks == ("x/y",)
    assert config.options == {"knn": {"folds": 3}, "probe": {"c": 1}}


def test_flags_override_the_file(tmp_path):
    (tmp_path / "run.yaml").write_text("models: [a/b]\nlimit: 3\nseed: 5\n")
    config = settings("--config", str(tmp_path / "run.yaml"), "--limit", "4")
    assert config == RunConfig(models="a/b", limit=4, seed=5)


@pytest.mark.parametrize("command", ["eval", "report", "push", "prepare", "doctor", "rerun"])
def test_abbreviated_flags_are_refused(command, capsys):
    needed = {"push": ["r", "--to", "a/b"], "prepare": ["x", "--out", "o"], "doctor": ["--model", "m"], "rerun": ["f"]}
    with pytest.raises(SystemExit) as stop:
        build_all().parse_args([command, *needed.get(command, []), "--hel"])
    assert stop.value.code == 2
    assert "no flag '--hel'. Did you mean '--help'?" in capsys.readouterr().err


def test_every_argument_of_every_command_has_help():
    def arguments(parser, command):
        for action in parser._actions:
            yield command, action
            if isinstance(action, argparse._SubParsersAction):
                for name, below in action.choices.items():
                    yield from arguments(below, f"{command} {name}".strip())

    assert not [
        f"{command}: {action.dest}" for command, action in arguments(build_all(), "") if command and not action.help
    ]
