"""Test flags: one per settings field, no abbreviations, and suggestions for unknown flags."""

import argparse
from dataclasses import fields

import pytest

from cardiobench.cli.commands import GROUPS, commands
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


def test_short_help_has_60_lines_and_the_full_one_all_flags(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    for line in (["--help"], ["--help-all"]):
        texts = []
        for parser, words in ((build_parser("cardiobench eval"), line), (build_all(), ["eval", *line])):
            with pytest.raises(SystemExit) as stop:
                parser.parse_args(words)
            assert stop.value.code == 0
            texts.append(capsys.readouterr().out)
        assert texts[0] == texts[1] and "--allow-missing" in texts[0] and "exit code" in texts[0]
        assert (len(texts[0].splitlines()) <= 60) == ("--seed" not in texts[0]) == (line == ["--help"])


def test_commands_are_in_five_groups(capsys):
    parser = build_all()
    names = [name for group in parser.groups.values() for name in group]
    assert len(parser.groups) == 5 and all(parser.groups.values()) and sorted(names) == sorted(["eval", *commands()])
    text = parser.format_help()
    assert all(f"\n{title}:\n" in text for title in parser.groups) and text.count("\n  compare ") == 1
    assert {getattr(module, "GROUP", "more") for module in commands().values()} == set(GROUPS)


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
