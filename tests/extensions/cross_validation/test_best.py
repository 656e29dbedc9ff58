"""Test the best classifier of each fold: chosen in inner folds, scored on the held-out records."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

from cardiobench.core.config import RunConfig
from cardiobench.extensions.cross_validation.best import choose_by_inner_folds, take_folds
from cardiobench.results.paths import predictions_path
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.run import run


def test_each_fold_uses_first_best_inner_classifier():
    def options(inner, f1):
        return {"f1_inner_folds": inner, "f1_folds": f1, "f1_macro_folds": f1, "auroc_folds": f1}

    candidates = {"tree": options([0.9, 0.1, 0.5], [0.1, 0.2, 0.3]), "mlp": options([0.8, 0.2, 0.5], [0.4, 0.8, 0.6])}
    chosen, details = choose_by_inner_folds(candidates)
    assert chosen.tolist() == [0, 1, 0]
    assert details["f1_folds"] == [0.1, 0.8, 0.3] and details["f1_median"] == 0.3
    assert details["chosen"] == {"tree": 2, "mlp": 1}
    tree = pd.DataFrame({"id": list("abcd"), "y_pred": ["no"] * 4, "p_no": 0.9, "p_yes": 0.1})
    mlp = pd.DataFrame({"id": list("dcba"), "y_pred": ["yes"] * 4, "p_no": 0.2, "p_yes": 0.8})
    answers = take_folds([tree, mlp], pd.Series([0, 1, 2, 1], index=list("abcd")), chosen).set_index("id")
    assert answers["y_pred"].to_dict() == {"a": "no", "b": "yes", "c": "no", "d": "yes"}


@pytest.mark.slow
def test_result_has_interval_verdict_and_folds(tmp_path):
    grids = tmp_path / "grids.json"
    grids.write_text(json.dumps({"tree": {"max_depth": [2], "min_samples_leaf": [5]}, "logistic": {"C": [0.01]}}))
    config = RunConfig(
        models=("cardiobench/ecg-morphology",),
        tasks=("ptb_xl_sample/cd",),
        protocols=("cross_validation",),
        options={"cross_validation": {"sizes": "XS", "classifiers": ["tree", "logistic"], "grids": str(grids)}},
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
        resamples=50,
        workers=0,
        jobs=1,
    )
    summary = run(config)
    (path,) = config.output_dir.glob("*/*/cross_validation.XS.best/*.json")
    best = ScoreResult.load(path)
    assert best.score.low < best.score.value < best.score.high and best.verdict.word
    assert best.verdict.refitted and best.verdict.p_value == summary.results[0].verdict.p_value
    frame = pd.read_parquet(predictions_path(path)).set_index("id")
    parts = {r.variant: r for r in summary.results}
    frames = {
        name: pd.read_parquet(predictions_path(path.parent.with_name(f"cross_validation.XS.{name}") / path.name))
        for name in ("tree", "logistic")
    }
    inner = np.array([parts[f"XS.{name}"].options["f1_inner_folds"] for name in frames])
    assert sum(best.options["chosen"].values()) == inner.shape[1] == 15
    # Each prediction comes from one of the two classifiers, and F1 over all of them equals scikit-learn's.
    (column, *_) = (name for name in frame if name.startswith("p_"))
    distances = [(one.set_index("id")[column] - frame[column]).abs() for one in frames.values()]
    assert (np.minimum(*distances) == 0).all()
    assert best.score.value == pytest.approx(f1_score(frame["y_true"], frame["y_pred"], average="macro"), abs=1e-12)
    shipped = replace(config, jobs=2, output_dir=tmp_path / "shipped")
    run(shipped)
    for made in config.output_dir.glob("*/*/cross_validation.*/*.parquet"):
        other = shipped.output_dir / made.relative_to(config.output_dir)
        pd.testing.assert_frame_equal(pd.read_parquet(made), pd.read_parquet(other), check_exact=True)
    again = path.stat().st_mtime_ns
    run(config)
    assert path.stat().st_mtime_ns == again, "kept without scoring again"
