"""Test the output of `cardiobench doctor`, and that it fails if a run would fail."""

from importlib.metadata import PackageNotFoundError, version

import pytest

from cardiobench.cli.doctor import examine
from cardiobench.cli.main import main
from cardiobench.data import catalog
from cardiobench.models.cards import card, list_models
from cardiobench.models.registry import NO_ADAPTER
from tests.models.tiny import tiny_open_clip, tiny_siglip, tiny_timm

ECHO_CLIP = "mkaichristensen/echo-clip"


def test_doctor_shows_all_settings_of_a_run(tmp_path, capsys):
    folder = tiny_open_clip(tmp_path / "clip", safe=False)
    assert main(["doctor", "--model", ECHO_CLIP, "--weights", str(folder), "--variant", "paper", "-v"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for said in (
        "Cedars-Sinai Academic Software License",
        "open_clip_config.json -> open_clip",
        "open_clip_pytorch_model.bin: not known, so not compared",
        "paper (offered: echo_clip, paper, paper_probe)",
        "in the embedding key, colour BGR",
        "in the embedding key, border round",
        "count=16, stride=1, start=key_frame",
        "prompts can be used",
        "fp32",
    ):
        assert said in printed, said
    for task in catalog.list_tasks():
        assert (f" {task} " in printed) == (catalog.spec(task.partition("/")[0]).modality == "echo")


def rows(diagnosis):
    return {row[0]: row[1:] for row in diagnosis.answers}


def test_doctor_lists_possible_and_impossible_tasks(tmp_path):
    with_text = rows(examine(str(tiny_siglip(tmp_path / "siglip"))))
    assert with_text["camus/ef"] == ("yes", "no such output", "yes", "not known")
    without = rows(examine(str(tiny_timm(tmp_path / "vit"))))
    assert without["camus/ef"] == ("no text tower", "no such output", "yes", "not known")
    assert "ptb_xl_sample/cd" not in without
    ecg = rows(examine("cardiobench/ecg-morphology"))
    assert ecg["ptb_xl_sample/cd"] == ("no text tower", "no such output", "yes", "no")
    assert "camus/ef" not in ecg


def test_quick_reads_no_weights(tmp_path):
    folder = tiny_open_clip(tmp_path / "clip", safe=False)
    (folder / "open_clip_pytorch_model.bin").write_bytes(b"damaged")
    quick = examine(ECHO_CLIP, quick=True, weights=folder)
    assert quick.problem is None
    assert ("weights", "not read") in quick.facts
    assert rows(quick)["camus/ef"][0] == "yes"
    assert "truncated" in str(examine(ECHO_CLIP, weights=folder).problem)


OUTSIDE = [
    name for name in list_models() if not card(name).hub and card(name).adapter != NO_ADAPTER and card(name).weights
]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        *((["--model", name], "is not on the Hub") for name in OUTSIDE[:1]),
        (["--model", "bowang-lab/EchoJEPA"], "cannot be loaded"),
        (["--model", "org/name"], "is not in the Hugging Face cache"),
        (["--model", "pixel-motion"], "Did you mean 'cardiobench/pixel-motion'?"),
        (["--model", "cardiobench/constant", "--pooling", "max"], "has no pooling 'max'"),
    ],
)
def test_model_that_does_not_load_gives_exit_code_2(arguments, reason, capsys):
    assert main(["doctor", *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_missing_key_is_found_without_running(tmp_path, capsys):
    from safetensors.torch import load_file, save_file

    file = tiny_timm(tmp_path / "vit") / "model.safetensors"
    state = load_file(file)
    del state["norm.weight"]
    save_file(state, file, metadata={"format": "pt"})
    assert main(["doctor", "--model", str(file.parent)]) == 2
    assert "1 missing: norm.weight" in capsys.readouterr().err


def is_installed(package):
    """Return whether a package `name==version` with weights is installed."""
    try:
        return bool(package and version(package.partition("==")[0]))
    except PackageNotFoundError:
        return False


@pytest.mark.parametrize("name", list_models())
def test_doctor_shows_every_card_with_and_without_files(name):
    """Check the output for a model without local files: the card names the source, and the message gives the reason."""
    found, diagnosis = card(name), examine(name)
    said = "\n".join(" ".join(fact) for fact in diagnosis.facts)
    without_files = not found.weights or is_installed(found.package)
    assert (diagnosis.problem is None) == (without_files and found.adapter != NO_ADAPTER)
    assert found.licence in said and found.access in said and found.pretraining_data in said
    for file, known in found.weights.items():
        assert f"{file}: SHA-256 {known or 'not known'}" in said
    assert all(str(key) in said for key in (*found.poolings, *found.variants, *found.native, *found.preprocessing))
    if diagnosis.problem:
        assert (found.revision or "none pinned") in said
    if found.adapter != NO_ADAPTER:
        offered = {row[0]: row for row in diagnosis.answers}
        names = {
            task for task in catalog.list_tasks() if catalog.spec(task.partition("/")[0]).modality in found.modalities
        }
        assert set(offered) == names
        native = {task for task, row in offered.items() if row[2] == "yes"}
        assert native == {task for task in names if catalog.task(task).target in found.native}
        assert {row[1] for row in offered.values()} <= (
            {found.text_in(next(iter(found.variants), "")), "no prompts", "no numeric prompts"}
            if found.text
            else {"no text tower"}
        )
        assert {task for task, row in offered.items() if row[4] == "yes"} == {
            task for task in names if task.partition("/")[0] in found.seen
        }


def test_tasks_with_equal_verdicts_share_a_line(tmp_path, capsys):
    (tmp_path / "lab.py").write_text(
        "from cardiobench import BaseEncoder\nfrom cardiobench.data.media import Ecg\n\n\nclass Mine(BaseEncoder):\n"
        "    name = 'lab/mine'\n\n    def transform(self, recording: Ecg):\n        return recording.signal.mean(0)[None]\n\n"
        "    def encode(self, parts):\n        return parts\n"
    )
    line = ["doctor", "--model", f"{tmp_path / 'lab.py'}:Mine", "--quick"]
    assert main(line) == 0
    short = capsys.readouterr().out.partition("supported tasks")[2]
    ecg = [name for name in catalog.list_tasks() if catalog.spec(name.partition("/")[0]).modality == "ecg"]
    assert f"{len(ecg)} tasks of " in " ".join(short.split()) and len(short.strip().splitlines()) <= 10
    assert main([*line, "-v"]) == 0
    whole = capsys.readouterr().out
    assert all(f" {name} " in whole for name in ecg)
