"""The key of a result: the code that makes it counts, what prints, draws or sends it does not."""

from types import SimpleNamespace

import pytest

from cardiobench.core import resources
from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.core.source_digest import source_files
from cardiobench.data import catalog
from cardiobench.protocols import list_protocols, protocol
from cardiobench.runner import cell
from cardiobench.runner.dense_evaluate import DenseCell
from cardiobench.runner.evaluate import evaluate_cell

ROOT = resources.PACKAGE.parent
NEVER = (
    "report/",
    "hub/",
    "cli/",
    "leaderboard/",
    "reproduction/",
    "runner/run.py",
    "core/console.py",
    "models/cards.py",
)


@pytest.fixture
def files_of(monkeypatch):
    """Protocol -> the files whose edit makes a result of bundled ECGs be made again (tests/core/test_source_digest.py)."""

    def files(name: str) -> set[str]:
        monkeypatch.setattr(cell, "source_digest", lambda *sources: source_files(*sources))
        scoring = DenseCell.scoring if name == "dense" else cell.Cell.scoring
        found = cell.code_digest.__wrapped__(type(protocol(name)), "ptb_xl_sample", scoring=scoring)
        return {str(path.relative_to(ROOT)) for path in source_files(*found)}

    monkeypatch.setattr(cell, "KEY_DIGITS", None)
    return files


@pytest.mark.parametrize("name", list_protocols())
def test_what_makes_a_result_counts_and_what_shows_it_does_not(name, files_of):
    files = files_of(name)
    assert {
        "cardiobench/scoring/score.py",
        "cardiobench/scoring/bootstrap.py",
        "cardiobench/runner/references.py",
        "cardiobench/protocols/base.py",
        "hf_metrics/f1_macro/formula.py",
        "hf_datasets/ptb_xl_sample/builder.py",
        "cardiobench/data/builder.py",
    } <= files
    assert not [file for file in files for part in NEVER if file.startswith(f"cardiobench/{part}")]
    assert not [file for file in files if file.endswith(".md") or "app.py" in file or "hf_datasets/camus" in file]


def test_a_protocol_counts_for_itself_only_with_the_modules_that_it_loads_by_name(files_of):
    assert "cardiobench/protocols/probe.py" in files_of("probe") - files_of("knn")
    assert "cardiobench/protocols/cross_validation/classifiers/tree.py" in files_of("cross_validation") - files_of(
        "knn"
    )


def test_the_scores_of_masks_count_for_dense_alone(files_of):
    own = {f"cardiobench/scoring/{name}.py" for name in ("dense", "discs", "frame_coverage", "mask_volumes")}
    assert own <= files_of("dense") - files_of("knn")


@pytest.mark.parametrize(
    ("name", "reason"), [("zero_shot", "cannot compare recordings"), ("native", "no trained heads")]
)
def test_a_model_that_cannot_take_part_is_refused_before_its_embeddings_are_read(name, reason):
    model = SimpleNamespace(encoder=SimpleNamespace(name="org/pictures"))
    refused = SimpleNamespace(
        config=RunConfig(), protocol=protocol(name), model=model, task=catalog.task("camus/ef"), variant=""
    )
    with pytest.raises(NotApplicable, match=reason):
        evaluate_cell(refused)  # which has no rows and no store
