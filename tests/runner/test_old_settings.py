"""Test settings of the last release: old flags, keywords and stored files give the same options and keys, with a warning."""

import json

import pytest
import yaml

from cardiobench import api
from cardiobench.cli.eval import build_parser, read_settings
from cardiobench.core.config import RunConfig, settings_of
from cardiobench.core.errors import BadConfig
from cardiobench.core.io import sha256_of_json
from cardiobench.protocols import list_protocols, protocol
from cardiobench.runner.old_settings import OLD, OldSetting, translate
from cardiobench.runner.run import apply_suite

GRIDS = {"logistic": {"C": [0.01, 1.0]}}
# Digests of all options of each protocol in its key, as computed at commit 40ef25b from the fields of RunConfig.
# A new option of a protocol changes its digests here.
DEFAULT = {
    "zero_shot": "50781b7ab6973f2a",
    "cross_validation": "422e7642ea775f75",
    "representation": "5c4f12d572aa76b9",
    "confound": "d6d15f6f98b11d2d",
    "stress": "3a46f365a385ad06",
}
BEFORE = [
    ("", {}),
    (
        "--sizes XS --classifiers logistic tree",
        {"cross_validation": "5f0d7165d06acfff", "representation": "7f73a6ad3f60b963"},
    ),
    (
        "--sizes XS --classifiers logistic --grids grids.json",
        {
            "cross_validation": "2c67a075d81ffa48",
            "representation": "5cc5cad5b6e975a8",
            "confound": "97f5b4138d20dd8d",
        },
    ),
    ("--stress-patients 7", {"stress": "7eed44529d49b3b7"}),
    ("--stress-patients 0", {"stress": "c5e0423d41888504"}),
    ("--share 0.5", {"zero_shot": "fab389217087be83"}),
    ("--seed 3 --sizes L --share 1.0", {"zero_shot": "ca919657e447195d", "cross_validation": "a7baae55e9e6033e"}),
]
HERE = [name for name in DEFAULT if name in list_protocols()]


def settings(*line):
    return read_settings(build_parser().parse_args(["--model", "a/b", *line]))


def digests(config):
    return {name: sha256_of_json(protocol(name, config).get_params())[:16] for name in config.protocols}


@pytest.fixture(autouse=True)
def grids(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grids.json").write_text(json.dumps(GRIDS))


@pytest.mark.parametrize(("flags", "changed"), BEFORE)
def test_old_flags_and_files_keep_their_options(flags, changed, tmp_path):
    wanted = {name: digest for name, digest in {**DEFAULT, **changed}.items() if name in HERE}
    given = settings(*flags.split(), "--protocols", *wanted)
    assert digests(given) == wanted
    words = {line.split()[0].replace("-", "_"): line.split()[1:] for line in flags.split("--")[1:]}
    stored = {
        "models": ["a/b"],
        "protocols": list(wanted),
        **{"share": 0.2, "stress_patients": 30, "sizes": [], "classifiers": [], "grids": None, "options": {}},
        **{
            name: values if name in ("sizes", "classifiers") else yaml.safe_load(values[0])
            for name, values in words.items()
        },
    }
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(stored))
    again = read_settings(build_parser().parse_args(["--config", "run.yaml"]))
    assert digests(again) == wanted and again.options == given.options


def test_old_settings_are_reported_with_their_replacement(capsys):
    config = settings("--protocols", "zero_shot", "--share", "0.4", "--stress-patients", "0")
    assert config.options == {"zero_shot": {"share": 0.4}}
    assert capsys.readouterr().err.splitlines() == [
        "--share 0.4 is deprecated; use --option zero_shot.share=0.4. The next release will no longer accept it.",
        "--stress-patients 0 is deprecated; no protocol of this run uses it. The next release will no longer accept it.",
    ]
    assert settings("--share", "0.4").options == {"zero_shot": {"share": 0.4}}, "the protocol runs by default"


def test_defaults_are_shown_for_flags_only(tmp_path, capsys):
    assert settings("--views", "all", "--share", "0.2", "--stress-patients", "30") == settings()
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" is deprecated; leave it out")[0] for line in lines] == [
        *("--share 0.2", "--stress-patients 30", "--views all")
    ]
    (tmp_path / "run.yaml").write_text("models: [a/b]\nshare: 0.2\nviews: all\nstress_patients: 30\n")
    assert read_settings(build_parser().parse_args(["--config", "run.yaml"])).options == {}
    assert capsys.readouterr().err == ""


def test_suggested_replacements_are_equivalent():
    given = {"sizes": ["XS", "S"], "protocols": ["cross_validation"]}
    translated, (line,) = translate(given, given)
    assert 'use --option \'cross_validation.sizes=["XS", "S"]\'.' in line
    assert translated["options"] == {"cross_validation": {"sizes": ["XS", "S"]}}


def test_current_spellings_take_precedence(tmp_path):
    line = ("--protocols", "zero_shot", "--share", "0.4")
    assert settings(*line, "--option", "zero_shot.share=0.5").options == {"zero_shot": {"share": 0.5}}
    (tmp_path / "run.yaml").write_text("protocols: [zero_shot]\noptions: {zero_shot: {share: 0.3}}\n")
    assert settings("--config", "run.yaml", "--share", "0.4").options == {"zero_shot": {"share": 0.4}}


def test_forbidden_settings_are_refused_in_old_spellings_too(tmp_path, monkeypatch):
    assert not OLD.keys() & settings_of(RunConfig).keys()
    monkeypatch.setitem(OLD, "cache", OldSetting(None, "DIR", lambda folder: {"cache_dir": folder}))
    assert str(settings("--cache", "mine").cache_dir) == "mine", "every row of the table is a flag"
    (tmp_path / "run.yaml").write_text("models: [a/b]\ncache: theirs\n")
    with pytest.raises(BadConfig, match="sets --cache-dir theirs"):
        read_settings(build_parser().parse_args(["--config", "run.yaml"]))


def test_keyword_of_python_is_translated_with_a_warning(monkeypatch):
    monkeypatch.setattr("cardiobench.runner.run.run", lambda config, encoders: pytest.fail(str(config.options)))
    with (
        pytest.warns(FutureWarning, match=r"zero_shot\.share=0\.5"),
        pytest.raises(BaseException, match=r"'share': 0\.5"),
    ):
        api.evaluate("a/b", protocols="zero_shot", share=0.5)


@pytest.mark.skipif("cross_validation" not in list_protocols(), reason="its extension is not here")
def test_suite_takes_options_that_only_select():
    suite = "cardiobench_ecg_v1"
    few = apply_suite(RunConfig(suite=suite, options=["cross_validation.sizes=XS"]))
    assert few.options == {"probe": {"refits": 20}, "knn": {"refits": 20}, "cross_validation": {"sizes": "XS"}}
    with pytest.raises(BadConfig, match=f"--suite {suite} fixes options"):
        apply_suite(RunConfig(suite=suite, options=["cross_validation.folds=3"]))
