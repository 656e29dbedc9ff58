"""Contract of all folders in hf_metrics/; new metrics are included automatically."""

import ast
import doctest
import inspect
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from cardiobench.core.errors import UnknownName
from cardiobench.core.resources import folder
from cardiobench.hub.publish import GRADIO
from cardiobench.hub.publish_metrics import PAGE
from cardiobench.metrics.load import list_metrics, load_formula, load_metric
from cardiobench.testing.metric import check_formula, check_numbers, check_refused, check_weights

from .metric_cases import BAD, CASES

NAMES = list_metrics()
FRAME_WISE = ("dice", "hausdorff95", "landmark_error")
"""Metrics that average frames within units and bootstrap the unit means."""


@pytest.fixture
def at_root(root, tmp_path, monkeypatch):
    """Change to the directory where `evaluate.load("cardiobench/<name>")` finds the metric, as in its Space."""
    (tmp_path / "cardiobench").symlink_to(root / "hf_metrics")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def source(name: str) -> Path:
    return folder("hf_metrics") / name / f"{name}.py"


REQUIREMENTS = (PAGE / "requirements.txt.in").read_text().splitlines()


def test_every_metric_has_cases():
    assert set(NAMES) == set(CASES) == set(BAD)


@pytest.mark.parametrize("name", NAMES)
def test_folder_is_complete(name):
    files = {path.name for path in source(name).parent.iterdir() if path.is_file()}
    assert files == {f"{name}.py", "formula.py", "README.md"}


SHAPE_FIRST = {
    "auroc_macro",
    "landmark_error",
    "linear_cka",
    "multilabel_f1",
    "retrieval_recall",
    "shap_overlap",
    "text_axis_pearson",
}
"""Metrics of tables, which reject the shape of an empty table."""


@pytest.mark.parametrize("name", sorted({*NAMES} - SHAPE_FIRST))
def test_empty_input_is_reported(name):
    rows = len(CASES[name]["references"])
    empty = {key: one[:0] if np.shape(one)[:1] == (rows,) else one for key, one in CASES[name].items()}
    with pytest.raises(ValueError, match=r"^0 .*: there is nothing to score\.$"):
        load_formula(name).compute(**empty)


def test_spaces_pin_the_tested_packages():
    first, *pins = REQUIREMENTS
    assert first.endswith("{COMMIT}")
    tested = (folder("hf_metrics").parent / "constraints-leaderboard.txt").read_text().splitlines()
    assert set(pins) <= set(tested)
    assert f"gradio=={GRADIO}" in tested


@pytest.mark.parametrize("name", NAMES)
def test_files_need_only_their_requirements(name):
    """Check for one import per line, as the loader of `evaluate` needs, and only packages in the requirements of the Space."""
    needed = {line.partition("==")[0] for line in REQUIREMENTS}
    packages = {"sklearn": "scikit-learn"}
    for file, wraps in ((source(name), True), (source(name).with_name("formula.py"), False)):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert len(node.names) == 1, ast.unparse(node)
                modules = [node.names[0].name]
            elif isinstance(node, ast.ImportFrom) and node.level:
                assert wraps and node.level == 1 and node.module == "formula", ast.unparse(node)
                continue
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module]
            else:
                continue
            for module in modules:
                top = module.partition(".")[0]
                assert wraps or top not in ("evaluate", "datasets"), "a formula has no wrapper"
                assert top in sys.stdlib_module_names or packages.get(top, top) in needed, top


def test_copies_of_shared_checks_are_identical():
    """Check that checks shared by several formulas are identical copies, because a Space contains only its own files."""
    copies: dict[str, dict[str, str]] = {}
    for name in NAMES:
        text = source(name).with_name("formula.py").read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and lines[node.lineno - 2].startswith("# Copied:"):
                copies.setdefault(node.name, {})[name] = ast.unparse(node)
    assert {"_labels", "_numbers", "_table", "_unit", "_whole"} <= set(copies)
    for function, texts in copies.items():
        assert len(texts) > 1 and len(set(texts.values())) == 1, (function, sorted(texts))


@pytest.mark.parametrize("name", NAMES)
def test_card_has_all_required_sections(name):
    text = source(name).with_name("README.md").read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2)
    facts = yaml.safe_load(front)
    assert facts["sdk"] == "gradio" and facts["sdk_version"] == "{GRADIO}" and facts["title"]
    headings = ["What it is", "How to use", "Inputs", "Output", "Values of real models", "Limits", "Citation"]
    positions = [body.find(f"## {heading}") for heading in headings]
    assert -1 not in positions and positions == sorted(positions)
    output = body[positions[3] : positions[4]]
    assert "range" in output.lower()
    for key, number in load_metric(name).numbers.items():
        assert f"`{key}`" in output, key
        if number.better is not None:
            assert number.better in output.lower()
    inputs = body[positions[2] : positions[3]]
    assert "(n" in inputs or "(m" in inputs or "(q" in inputs


@pytest.mark.parametrize("name", NAMES)
def test_formula_is_complete(name):
    assert (load_formula(name).__doc__ or "").strip()
    check_formula(load_metric(name), CASES[name])
    if name not in FRAME_WISE:
        check_numbers(load_metric(name), CASES[name])


@pytest.mark.parametrize("name", NAMES)
def test_evaluate_loads_it_and_agrees(name, at_root):
    import evaluate

    module = evaluate.load(f"cardiobench/{name}")
    assert isinstance(module, evaluate.Metric)
    parameters = inspect.signature(module._compute).parameters.values()
    assert not [p for p in parameters if p.kind is inspect.Parameter.VAR_KEYWORD]
    given = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in CASES[name].items()}
    found, expected = module.compute(**given), load_metric(name).compute(**CASES[name])
    assert set(found) == set(expected)
    for key in load_metric(name).numbers:
        assert found[key] == pytest.approx(expected[key], rel=1e-12, nan_ok=True), key


@pytest.mark.parametrize("name", NAMES)
def test_example_in_its_docstring_runs(name, at_root):
    import evaluate

    module = sys.modules[type(evaluate.load(f"cardiobench/{name}")).__module__]
    found = doctest.testmod(module)
    assert found.attempted >= 2 and found.failed == 0


@pytest.mark.parametrize(("name", "change"), [(name, change) for name in NAMES for change in BAD[name]])
def test_invalid_input_is_refused_with_a_count(name, change):
    check_refused(load_metric(name), change, {**CASES[name], **BAD[name][change]})


@pytest.mark.parametrize("name", [name for name in NAMES if load_metric(name).compute_resamples])
def test_integer_weight_equals_repeated_rows(name):
    check_weights(load_metric(name), CASES[name])


@pytest.mark.parametrize("load", [load_metric, load_formula])
def test_unknown_metric(load):
    """Formulas are also used by intervals, and their folder can be deleted."""
    with pytest.raises(UnknownName, match=r"no metric .f1_marco.\. Did you mean .f1_macro."):
        load("f1_marco")


def test_metrics_can_be_combined(at_root):
    import evaluate

    both = evaluate.combine(["cardiobench/mae", "cardiobench/regression_report"])
    found = both.compute(**{key: value.tolist() for key, value in CASES["mae"].items()})
    assert set(found) == {"mae", *load_metric("regression_report").numbers}
    assert found["mae"] == load_metric("mae").compute(**CASES["mae"])["mae"]
