"""Test poolings side by side: the content of a row, and omitted results."""

from dataclasses import replace

from cardiobench.report.poolings import markdown, pooling_table
from tests.report.example_results import scored_example


def result(pooling, quality=0.9, revision="r1", name="org/one", seed=1, **preprocessing):
    _, scored = scored_example("phantom_ecg/cd", quality, seed)
    facts = {"fs": 100, "pooling": pooling, **preprocessing}
    model = {"name": name, "revision": revision, "token_pooling": pooling, "preprocessing": facts}
    return replace(scored, protocol="probe", model=model)


def test_poolings_of_a_model_share_one_row():
    mean, cls = result("mean", 0.95), result("cls", 0.6)
    columns, ((task, model, label, _, *cells),) = pooling_table([mean, cls, result("mean", name="org/two")])
    assert columns[-2:] == ("cls", "mean") and (task, model, label) == ("phantom_ecg/cd", "org/one", "probe")
    for cell, one in zip(cells, (cls, mean), strict=True):
        assert cell.startswith(f"{100 * one.score.value:.2f} [{100 * one.score.low:.2f} – ")
    assert "## Poolings" in markdown([mean, cls])


def test_other_revisions_and_preprocessing_are_not_compared():
    assert markdown([result("mean"), result("cls", revision="r2")]) == ""
    assert markdown([result("mean"), result("cls", fs=500)]) == ""


def test_one_pooling_and_kept_tokens_coexist():
    kept = result("tokens", 0.6, tokens={"block": "last", "parts": 1, "grid": [8, 7, 7, 512]})
    columns, ((*_, own, tokens),) = pooling_table([kept, result("", 0.95)])
    assert columns[-2:] == ("its own", "tokens") and own > tokens
    assert markdown([result(""), result("", name="org/two")]) == ""


def test_repeated_pooling_is_left_out():
    columns, ((*_, cls, maximum),) = pooling_table([result("mean"), result("mean", 0.6), result("max"), result("cls")])
    assert columns[-2:] == ("cls", "max") and cls == maximum
