"""Check the list of the papers' models against their cards, and what `reproduce` finds, misses and runs."""

import re
import runpy
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import constants

from cardiobench.cli import eval as eval_command
from cardiobench.cli.main import build_parser, main
from cardiobench.data.twin import write_twin
from cardiobench.extensions.papers import reproduce
from cardiobench.extensions.papers.paper_models import PAPERS, loadable
from cardiobench.extensions.papers.reproduce import model_state
from cardiobench.models.cards import find_card
from tests.models.checkpoints import CHECKPOINTS, change_card

FOUNDER = "PKUDigitalHealth/ECGFounder"
NAMED = {name for paper in PAPERS.values() for name in paper.models}
ABSENT = sorted(name for name in NAMED if find_card(name) is None)
complete = pytest.mark.skipif(bool(ABSENT), reason=f"without {', '.join(ABSENT)}")


@pytest.fixture(scope="module")
def page(root):
    """Return the page as made from the cards."""
    return runpy.run_path(str(root / "docs" / "make_paper_models.py"))["page"]()


@complete
def test_page_has_the_facts_of_the_cards(root, page):
    written = (root / "docs" / "paper_models.md").read_text(encoding="utf-8")
    assert written == page, "run: python docs/make_paper_models.py"
    assert "compare 14 models" in written and written.count("\n### ") == len(NAMED)


def test_commands_of_the_page_are_valid(page):
    parser = build_parser()
    lines = re.findall(r"^cardiobench .*$", page, re.MULTILINE)
    assert len(lines) == 2 + 2 * (len(NAMED) - len(ABSENT))
    for line in lines:
        parser.parse_args(shlex.split(line)[1:])


def test_every_model_of_the_papers_has_a_synthetic_checkpoint():
    """`tests/hub/test_every_model.py` loads those of the Hub from a loopback Hub, `tests/models` the others from folders."""
    for paper in PAPERS.values():
        for card in paper.cards():
            assert loadable(card) and card.id in CHECKPOINTS


def test_runs_are_those_of_the_page_of_the_tables(root):
    lines = (root / "docs" / "papers.md").read_text(encoding="utf-8")
    for tasks, protocols in PAPERS["echo"].runs:
        assert f"--tasks {' '.join(tasks)} --protocols {' '.join(protocols)} --profile paper`" in lines


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """Put the file of ECGFounder into a cache of the Hub, and a small twin of Georgia into a folder; return the folder."""
    if ABSENT:
        pytest.skip(f"without {', '.join(ABSENT)}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    repository = tmp_path / "hub" / f"models--{FOUNDER.replace('/', '--')}"
    commit = "a" * 40
    for file, content in {"refs/main": commit, f"snapshots/{commit}/12_lead_ECGFounder.pth": "weights"}.items():
        (repository / file).parent.mkdir(parents=True)
        (repository / file).write_text(content)
    write_twin("georgia", tmp_path / "raw" / "georgia", patients=6)
    return tmp_path / "raw"


def test_incomplete_data_is_in_part(cached, capsys):
    next((cached / "georgia").rglob("*.hea")).unlink()
    assert main(["reproduce", "ecg", "--dry-run", "--data-dir", str(cached)]) == 0
    assert "georgia in part" in printed(capsys)


def printed(capsys):
    return " ".join(capsys.readouterr().out.split())


def test_dry_run_lists_what_is_here_and_where_the_rest_is(cached, capsys):
    assert main(["reproduce", "ecg", "--dry-run", "--data-dir", str(cached)]) == 0
    text = printed(capsys)
    assert f"{FOUNDER} ECGFounder in the cache of the Hub MIT 30.6 million parameters" in text
    assert "mimic_iv_ecg_physionet_pretrained.pt: on the Hub at https://huggingface.co/wanglab/ecg-fm" in text
    assert "recordings (generated)" in text and "physionet.org/content/ptb-xl" in text
    assert "1 of 6 models are here" in text and "1 of 4 datasets are here" in text


def test_what_is_here_is_run_with_the_published_settings(cached, capsys, monkeypatch):
    asked = []
    monkeypatch.setattr(eval_command, "run_and_print", lambda config: asked.append(config) or 0)
    line = ["reproduce", "ecg", "--data-dir", str(cached), "--output-dir", "out"]
    assert main(line) == 0
    (config,) = asked
    assert (config.models, config.tasks, config.profile) == ((FOUNDER,), ("georgia",), "paper")
    assert config.protocols == ("cross_validation", "representation") and config.output_dir == Path("out")
    text = printed(capsys)
    assert "the data are generated, so their results are in no table of the paper" in text and "--layout" not in text
    assert main([*line, "--model", "wanglab/ecg-fm"]) == 1 and len(asked) == 1
    assert "nothing was computed" in printed(capsys)
    state = reproduce.dataset_state
    monkeypatch.setattr(reproduce, "dataset_state", lambda *given: replace(state(*given), generated=False))
    assert main(line) == 0 and "the tables: cardiobench report out --layout paper" in printed(capsys)


def test_given_files_are_found_and_compared(tmp_path, monkeypatch):
    if (card := find_card("echonet/EchoPrime")) is None:
        pytest.skip("without EchoPrime")
    (tmp_path / "model_data").mkdir()
    first, *others = card.weights
    (tmp_path / "model_data" / first).write_bytes(b"weights")
    state = model_state(card, tmp_path)
    assert not state.complete and state.found == "in part"
    assert state.missing.startswith(f"{', '.join(others)}: not in {tmp_path}; download model_data.zip")
    for file in others:
        (tmp_path / file).write_bytes(b"weights")
    assert model_state(card, tmp_path).complete
    change_card(monkeypatch, card.id, weights=dict.fromkeys(card.weights, "0" * 64))
    state = model_state(find_card(card.id), tmp_path)
    assert not state.complete and "expected 0000" in state.missing


@complete
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--model", "wanglab/ecg-fn"], "Did you mean 'wanglab/ecg-fm'"),
        (["--weights", "folder"], "give ID=PATH"),
        (["--weights", "vuno/ST-MEM=folder"], "ID is one of wanglab/ecg-fm"),
        (["--data-dir", "nowhere"], "--data-dir nowhere does not exist"),
    ],
)
def test_wrong_arguments_are_named(flags, message, capsys):
    assert main(["reproduce", "ecg", "--dry-run", *flags]) == 2
    assert message.lower() in capsys.readouterr().err.lower()
