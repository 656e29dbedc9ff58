"""Test prompt sets of users: all faults in one message, missing classes, and the template of `cardiobench prompts`."""

import json

import pytest

from cardiobench.cli.main import main
from cardiobench.core.errors import BadData, UnknownName
from cardiobench.data import catalog
from cardiobench.data.prompts import keys_of, prompts, template

AS = "tmed2/as"


def write(path, content):
    path.write_text(json.dumps(content))
    return path


def test_all_faults_of_a_prompt_set_are_in_one_message(tmp_path):
    content = {
        "as": {"AS": "one text", "no_AS": ["good", " "]},
        "ef": {"templates": ["with <#>", "without"]},
        "view": ["A2C"],
    }
    with pytest.raises(BadData) as raised:
        prompts(catalog.task(AS), write(tmp_path / "mine.json", content))
    for told in (
        "its version is None; expected a text or a number",
        "'as', 'AS' is not a list of strings",
        "'as', 'no_AS' has 1 empty text",
        "'ef', 'templates' has 1 text without <#>, such as 'without'",
        "'view' is not a mapping to lists of texts",
        "cardiobench prompts DATASET --out FILE",
    ):
        assert told in str(raised.value)


def test_number_of_faults_in_a_message_is_limited(tmp_path):
    content = {"version": 1, **{f"target{place}": 0 for place in range(50)}}
    with pytest.raises(BadData, match=r"'target19' is not a mapping to lists of texts; and 30 more\)"):
        prompts(catalog.task(AS), write(tmp_path / "mine.json", content))


def test_faults_for_the_tasks_of_a_run_are_in_the_same_message_before_anything_is_computed(tmp_path, capsys):
    content = {
        "version": 1,
        "view": {"A2C": [], "A4C": ["good"], "a3c": ["good"]},
        "ef": {"templates": ["no number", 5]},
    }
    file = write(tmp_path / "mine.json", content)
    line = [
        "--model",
        "cardiobench/constant",
        "--tasks",
        "phantom_echo/view",
        "phantom_echo/ef",
        "--prompts",
        str(file),
    ]
    assert main(["eval", *line, "--output-dir", str(tmp_path / "out")]) == 2
    said = capsys.readouterr()
    assert "encoding" not in said.out and not (tmp_path / "out").exists()
    for told in (
        "'ef', 'templates' is not a list of strings",
        "'ef', 'templates' has 1 text without <#>, such as 'no number'",
        "phantom_echo/view lacks texts for A2C, A3C, PSAX, PLAX, Other; it has a3c, which the task does not use",
    ):
        assert told in said.err


def test_missing_classes_are_named_with_the_keys_that_do_not_fit(tmp_path):
    content = {"version": "1", "as": {"as": ["a"], "no_AS": []}}
    with pytest.raises(UnknownName, match=r"tmed2/as lack no_AS, AS\. Add a list of texts for each\. It has as, which"):
        prompts(catalog.task(AS), write(tmp_path / "mine.json", content))


@pytest.mark.parametrize("name", ["tmed2", "camus", "phantom_echo", "echonet_lvh", AS])
def test_template_is_a_valid_prompt_set_with_the_texts_of_the_package(tmp_path, capsys, name):
    out = tmp_path / "mine.json"
    assert main(["prompts", name, "--out", str(out)]) == 0
    tasks = [catalog.task(name)] if "/" in name else catalog.spec(name).tasks
    content = json.loads(out.read_text())
    assert set(content) - {"version"} == {task.target for task in tasks} & set(content) != set()
    for task in tasks:
        if task.target in content:
            expected, _ = prompts(task)
            assert prompts(task, out)[0] == {key: list(expected[key]) for key in keys_of(task)}
    assert main(["prompts", name, "--out", str(out)]) == 2, "a file is never replaced"


def test_template_names_the_classes_without_a_text(tmp_path, capsys):
    out = tmp_path / "mine.json"
    assert main(["prompts", "ptb_xl_sample", "--out", str(out)]) == 0
    assert "without a text so far: cd no CD, cd CD" in " ".join(capsys.readouterr().out.split())
    assert json.loads(out.read_text())["cd"] == {"no CD": [], "CD": []}


def test_numbers_without_a_grid_are_left_out():
    assert set(template([catalog.task("ptb_xl_sample/age")])) == {"version"}
