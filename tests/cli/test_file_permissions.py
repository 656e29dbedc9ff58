"""Check that untrusted settings files cannot run code, use the network, write elsewhere or publish."""

from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from cardiobench.cli.eval import build_parser, read_settings
from cardiobench.cli.file_permissions import flags_to_repeat
from cardiobench.cli.main import main
from cardiobench.core.config import RunConfig, ScoreConfig, absolute, default_of, flag_of, settings_of, to_yaml
from cardiobench.core.config_file import read_config
from cardiobench.core.errors import BadConfig
from cardiobench.core.setting import HOW, Setting
from cardiobench.protocols import list_protocols, option_types, protocol_class
from cardiobench.protocols.options import InFile, in_file

# Settings that an attacker might use, in every equivalent spelling. The list is independent of the package.
REFUSED = {
    "models": ["evil.py:Model", ["os:system"], ["a/b", "/tmp/evil.py:Model"], ["package.module:make"]],
    "datasets_dir": ["datasets", "/"],
    "models_dir": ["cards"],
    "trust_remote_code": [True, "true", "yes", 1, "on"],
    "weights": ["weights.pt"],
    "output_dir": ["../elsewhere", "/tmp/elsewhere", "~/.ssh"],
    "cache_dir": ["cache"],
    "push_to_hub": [True, "1", "y"],
    "report_to": ["wandb", ["tensorboard"]],
    "reuse_from": ["mallory", ["alice", "mallory"]],
    "backend": ["dask=tcp://host:8786", "ray", "dask"],
}
HARMLESS = {
    "models": ["org/name", "./folder", ["cardiobench/constant"]],
    "trust_remote_code": [False, "no"],
    "push_to_hub": [False],
    "report_to": [[]],
    "reuse_from": [[]],
    "backend": ["loky"],
    "weights": [None],
    "output_dir": ["results"],
    "options": [{"stress": {"kinds": ["noise"]}, "probe": {"refits": 2}}],
}
CASES = [(name, value) for name, values in REFUSED.items() for value in values]


def settings(file, *flags):
    return read_settings(build_parser().parse_args(["--config", str(file), *flags]))


def written(folder, values, name="x.yaml"):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump({"models": ["org/name"], **values}))
    return file


def test_every_setting_states_whether_a_file_may_set_it():
    refused = {
        name
        for kind in (RunConfig, ScoreConfig)
        for name, setting in settings_of(kind).items()
        if setting.in_file is not True
    }
    assert refused == set(REFUSED)
    with pytest.raises(TypeError, match="in_file"):
        Setting("a new one", HOW)
    # Fields of these types are paths or free text. They were reviewed by hand: the run only reads them.
    text = {field.name for kind in (RunConfig, ScoreConfig) for field in fields(kind) if "Path" in str(field.type)}
    assert text - refused == {"data_dir", "prompts", "predictions", "references", "embeddings"}


@pytest.mark.parametrize(("name", "value"), CASES, ids=lambda value: str(value)[:30])
def test_file_with_a_forbidden_setting_is_refused_with_its_flag(tmp_path, name, value):
    flag = flag_of(RunConfig, name)
    with pytest.raises(BadConfig) as error:
        settings(written(tmp_path, {name: value}))
    message = str(error.value)
    assert f"sets {flag}" in message and "\n" not in message and message.count(". ") == 0


@pytest.mark.parametrize(("name", "value"), CASES, ids=lambda value: str(value)[:30])
def test_forbidden_setting_is_accepted_as_flag(tmp_path, name, value):
    file = written(tmp_path, {name: value, "seed": 5})
    flag = flag_of(RunConfig, name)
    repeated = [flag] if default_of(RunConfig, name) is False else [flag, "ray" if name == "backend" else "mine"]
    config = settings(file, *repeated)
    assert config.seed == 5 and getattr(config, name) != default_of(RunConfig, name)


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in HARMLESS.items() for value in values], ids=str
)
def test_harmless_settings_are_accepted_in_a_file(tmp_path, name, value):
    assert settings(written(tmp_path, {name: value})).models


def test_all_forbidden_settings_are_named_without_control_characters(tmp_path):
    file = written(tmp_path, {"weights": "a\x1b[2J\nb", "report_to": ["w" * 5000], "push_to_hub": True})
    with pytest.raises(
        BadConfig, match=r"--push-to-hub.*--report-to w{9,90}\.\.\..*--weights '?a\\x1b\[2J\\nb"
    ) as error:
        settings(file)
    assert len(str(error.value)) < 800


@pytest.mark.parametrize(
    "text",
    [
        "models: [org/name]\nx: &a {push_to_hub: true}\n<<: *a\n",
        "defaults: &m [evil.py:X]\nmodels: *m\n",
        "models: !!python/object/apply:os.system [ls]\n",
        "models: !!python/name:os.system\n",
        "models: [a/b]\ntrust_remote_code: false\ntrust_remote_code: true\n",
        '{"models": ["evil\\u002epy\\u003aX"]}\n',
        "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nmodels: [*c,*c,*c,*c,*c,*c,*c,*c]\n",
        "models: &m [*m]\n",
        "1: 2\n",
        "? [a]\n: b\n",
        "models: [" + "a/b, " * 300_000 + "]\n",
    ],
    ids=lambda text: text[:30],
)
def test_yaml_tags_and_expanding_anchors_give_one_message(tmp_path, text):
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(Exception) as error:
        settings(file)
    assert type(error.value).__module__ == "cardiobench.core.errors" and len(str(error.value)) < 2000


def test_variables_in_a_file_are_not_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("EVIL", "evil.py:X")
    assert settings(written(tmp_path, {"models": ["$EVIL"]})).models == ("$EVIL",)


@pytest.mark.parametrize("command", ["rerun", "eval"])
def test_result_file_as_settings_gives_one_message(tmp_path, command, capsys):
    file = tmp_path / "result.json"
    file.write_text(
        '{"schema": 3, "stamp": {}, "task": "a/b", "seal": "1", "options": {"k": 3}, "models": [{"name": "a"}]}'
    )
    line = [command, *(["--config"] if command == "eval" else []), str(file), "--option", "knn.k=3"]
    assert main(line) == 2 and "is a result, not settings" in capsys.readouterr().err


def test_no_model_code_named_in_a_file_is_imported(tmp_path, capsys):
    evil = tmp_path / "evil.py"
    evil.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass X: pass\n")
    assert main(["rerun", str(written(tmp_path, {"models": [f"{evil}:X"]}))]) == 2
    assert not (tmp_path / "ran").exists() and f"--model {evil}:X" in capsys.readouterr().err


def test_run_file_cannot_write_outside_its_results_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = RunConfig(models="org/name", output_dir=Path("out"))
    file = tmp_path / "out" / "runs" / "abc" / "run.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(to_yaml(absolute(config)))
    assert settings(file).output_dir == tmp_path / "out"
    link = tmp_path / "stranger" / "runs" / "abc" / "run.yaml"
    link.parent.mkdir(parents=True)
    link.symlink_to(file)
    with pytest.raises(BadConfig, match="--output-dir"):
        settings(link)


def test_printed_rerun_flags_are_forbidden_in_files(tmp_path):
    config = RunConfig(models=["my file.py:Mine", "a/b"], output_dir=tmp_path, trust_remote_code=True)
    file = tmp_path / "run.yaml"
    file.write_text(to_yaml(config))
    expected = [["--model", "my file.py:Mine", "a/b"], ["--trust-remote-code"], ["--output-dir", str(tmp_path)]]
    assert sorted(flags_to_repeat(file, read_config(file))) == sorted(expected)


def test_free_text_options_are_declared_or_refused(tmp_path, monkeypatch):
    marked = {
        f"{name}.{option}"
        for name in list_protocols()
        for option, hint in option_types(name).items()
        if InFile in getattr(hint, "__metadata__", ())
    }
    free = {"stress.kinds", "cross_validation.grids", "representation.grids", "confound.grids"}
    assert marked == {option for option in free if option.partition(".")[0] in list_protocols()}
    monkeypatch.setitem(protocol_class("knn").__annotations__, "seed", str)
    assert not in_file(protocol_class("knn"), "seed")
    file = written(tmp_path, {"options": {"knn": {"seed": "tcp://host"}}})
    with pytest.raises(BadConfig, match=r"sets --option knn\.seed=tcp://host"):
        settings(file)
    assert settings(file, "--option", "knn.seed=3").options["knn"]["seed"] == 3
