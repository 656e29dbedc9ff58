"""Test the output of `cardiobench list` for every dataset."""

import re

from cardiobench.cli.commands.list import dataset_groups, print_list
from cardiobench.core.console import Console
from cardiobench.data import catalog
from cardiobench.models.cards import card, list_models


def test_list_names_every_dataset_task_and_model(capsys, monkeypatch):
    monkeypatch.delenv("CARDIOBENCH_DATA", raising=False)
    print_list(Console())
    printed = capsys.readouterr().out
    here, elsewhere = printed.split("└── not on this machine")
    for name in catalog.list_datasets():
        spec = catalog.spec(name)
        (generated,) = re.findall(rf"── {name}( \(generated\))?: ", printed)
        assert all(f" {task.name.partition('/')[2]}" in printed for task in spec.tasks)
        assert bool(generated) == spec.generated and (not spec.generated or f" {name} " in here)
    assert re.search(
        r"ptb_xl_sample: cd, super, age, sex\s+│\s+│\s+├── here: 237 / 34 / 122 \(train / validation / test\)", here
    )
    assert " camus: " in elsewhere
    assert "cardiobench/minirocket" in printed


def test_each_model_has_one_line_with_its_source(capsys):
    print_list(Console(), models_only=True)
    first, second = capsys.readouterr().out.split("models: licence")
    lines = {line.split()[0]: line.split() for line in first.splitlines() if "/" in line}
    assert set(lines) == set(list_models()), "no name is split across two lines"
    for name, words in lines.items():
        found = card(name)
        assert ("yes" if found.text else "no") in words and all(f"{target}" in first for target in found.native)
        assert name in second
    assert "none; unknown: echonet_lvh" in first, "unknown facts of EchoCLIP are not shown as 'none'"
    said = " ".join(second.split())
    assert "gated; accept the terms" in said and "not available outside the authors" in said


def test_family_of_datasets_is_named_once():
    assert dataset_groups(("ptb_xl", "ptb_xl_500", "ptb_xl_sample", "georgia")) == ["ptb_xl*", "georgia"]
    assert dataset_groups(("ptb_xl_500", "mimic_iv_echo")) == ["ptb_xl_500", "mimic_iv_echo"]
