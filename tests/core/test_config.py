"""Test settings from flags, YAML and Python, and errors that name field and value."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import yaml

from cardiobench.core.config import (
    RunConfig,
    ScoreConfig,
    absolute,
    absolute_paths,
    default_cache,
    make_config,
    settings_of,
    to_yaml,
)
from cardiobench.core.config_file import merge, read_config
from cardiobench.core.errors import BadConfig, UnknownName
from cardiobench.core.run_options import RunOptions
from cardiobench.core.setting import parse_options


def test_every_setting_has_help_and_a_group():
    for kind in (RunConfig, ScoreConfig):
        assert all(setting.help and setting.group for setting in settings_of(kind).values())


def test_texts_are_converted_to_the_field_types():
    config = make_config(
        RunConfig, {"models": "a/b", "tasks": ["x/y"], "limit": "3", "data_dir": "raw", "recording_timeout": "0.5"}
    )
    assert config == RunConfig(models=("a/b",), tasks=("x/y",), limit=3, data_dir=Path("raw"), recording_timeout=0.5)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"limit": 0}, "limit 0: expected a number of at least 1"),
        ({"seed": -1}, "seed -1"),
        ({"recording_timeout": 0}, "recording_timeout 0"),
        ({"models": [""]}, "models ''"),
        ({"precision": "fp8"}, "precision 'fp8': expected 'auto', 'fp32' or 'bf16'"),
        ({"options": ["refit=true"]}, "options: 'refit=true' is not PROTOCOL.OPTION=VALUE"),
        ({"backend": "dsk"}, "backend: no backend 'dsk'. Give loky, ray, or dask=tcp://HOST:PORT"),
        ({"jobs": 9999}, "jobs 9999: expected a number of at most 512"),
        ({"overwrite": "maybe"}, "overwrite 'maybe': expected true or false"),
    ],
)
def test_invalid_value_is_reported_with_its_field(values, message):
    with pytest.raises(BadConfig) as error:
        make_config(RunConfig, values)
    assert message in str(error.value)


def test_all_invalid_flags_are_reported_together():
    with pytest.raises(BadConfig, match=r"--model ''.*--jobs 0|--jobs 0.*--model ''"):
        make_config(RunConfig, {"models": [""], "jobs": 0}, flags=True)


def test_unknown_setting_names_the_nearest_one():
    with pytest.raises(UnknownName, match="Did you mean 'batch_size'"):
        make_config(RunConfig, {"batchsize": 3})


def test_options_are_parsed_from_text():
    texts = ["representation.refit=true", "representation.map_settings=[[15, 0.1]]", "knn.folds=3"]
    assert parse_options(texts) == {"representation": {"refit": True, "map_settings": [[15, 0.1]]}, "knn": {"folds": 3}}
    assert parse_options(["cross_validation.search=flat"]) == {"cross_validation": {"search": "flat"}}
    for text in ("refit", "refit=true", "representation=1", ".refit=true", "representation.=1"):
        with pytest.raises(ValueError, match=r"PROTOCOL\.OPTION=VALUE"):
            parse_options([text])


def test_file_repeats_the_run_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = RunConfig(models="a/b", data_dir=Path("raw"), options=["knn.folds=3"], limit=2, cache_dir=Path("/cache"))
    path = tmp_path / "run.yaml"
    path.write_text(to_yaml(absolute(config)))
    monkeypatch.chdir("/")
    again = make_config(RunConfig, read_config(path))
    assert again.data_dir == tmp_path / "raw" and again.output_dir == tmp_path / "results"
    assert yaml.safe_load(to_yaml(again)) == yaml.safe_load(path.read_text()) and again.options == config.options


def test_flags_override_the_file_and_options_are_merged():
    base = {"models": ["a"], "limit": 3, "options": {"knn": {"folds": 3, "k": 5}, "probe": {"x": 1}}}
    assert merge({"options": ["knn.k=7"]}, {"options": {}}) == {"options": {"knn": {"k": 7}}}
    assert merge(base, {"limit": 4, "options": ["knn.k=7"]}) == {
        "models": ["a"],
        "limit": 4,
        "options": {"knn": {"folds": 3, "k": 7}, "probe": {"x": 1}},
    }


@pytest.mark.parametrize("text", ["- a\n", "a: [", "", None])
def test_file_without_a_mapping_is_refused(tmp_path, text):
    path = tmp_path / "run.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadConfig, match=r"run\.yaml"):
        read_config(path)


@pytest.mark.parametrize("text", [None, "a: [", "x: y: z", "**Above**: *the floor*"])
def test_invalid_yaml_file_gives_one_line_with_advice(tmp_path, text):
    path = tmp_path / "report.md"
    path.mkdir() if text is None else path.write_text(text)
    with pytest.raises(
        BadConfig, match=r"cannot be read as YAML: .*Give a file of settings, such as a run\.yaml"
    ) as error:
        read_config(path)
    assert "\n" not in str(error.value)


def accepted(hint):
    """Return the accepted Python type for the type of a field."""
    if hint is Path:
        return str | Path
    if hint == tuple[str, ...]:
        return str | Sequence[str]
    if type(None) in get_args(hint):
        return reduce(or_, map(accepted, get_args(hint)))
    return hint


def test_evaluate_options_equal_run_fields():
    fields = get_type_hints(RunConfig)
    arguments = {"models", "embeddings", "tasks", "protocols"}
    typed = {name: accepted(hint) for name, hint in fields.items() if name not in arguments}
    assert get_type_hints(RunOptions) == typed


def test_absolute_paths_keep_the_names_of_own_models(tmp_path, monkeypatch):
    """Results hold the name of a model, and a path of this machine in them could not be pushed."""
    monkeypatch.chdir(tmp_path)
    config = RunConfig(models=("my.py:Means", "org/name"), output_dir=Path("here"))
    paths = absolute_paths(config)
    assert (paths.output_dir, paths.data_dir, paths.models) == (tmp_path / "here", None, ("my.py:Means", "org/name"))
    assert absolute(config).models == (f"{tmp_path}/my.py:Means", "org/name")


def test_cache_follows_the_desktop_standard(monkeypatch, tmp_path):
    monkeypatch.delenv("CARDIOBENCH_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache() == tmp_path / "xdg" / "cardiobench"
    for ignored in ("", "relative/folder"):  # The standard demands an absolute path.
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert default_cache() == Path.home() / ".cache" / "cardiobench"
    monkeypatch.setenv("CARDIOBENCH_CACHE", str(tmp_path / "own"))
    assert default_cache() == tmp_path / "own"
