"""Check that submitted width and parameters must match the model card; run times are not verified."""

from dataclasses import replace

import pytest

from cardiobench.core import plugins
from cardiobench.leaderboard import verify
from cardiobench.leaderboard.differences import trusted
from cardiobench.leaderboard.table import costs
from cardiobench.results.collect import Collection
from cardiobench.results.cost import Timing
from tests.leaderboard.submissions import COST, submit, write_dataset


@pytest.fixture
def submission(tmp_path, monkeypatch):
    monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", "")
    plugins.add_folder("hf_datasets", write_dataset(tmp_path))
    return submit(tmp_path, target="sick", model="facebook/dinov3-vitb16-pretrain-lvd1689m")


def problems(submission, **changes):
    result = submission.result
    entry = submission.entry(replace(result, cost=replace(COST, **changes)).to_json())
    return verify.check(entry, submission.files(entry), submission.data_dir).problems


def test_embedding_width_unknown_to_the_card_is_refused(submission):
    assert not problems(submission)
    assert problems(submission, width=512) == (
        "cost width: 512 claimed, but the card of facebook/dinov3-vitb16-pretrain-lvd1689m states 768",
    )


@pytest.mark.slow
def test_parameters_are_compared_where_the_card_states_them(submission, monkeypatch):
    assert "85,659,648" in problems(submission, parameters=5_000_000)[0]
    assert not problems(submission, parameters=85_659_648)
    rules = verify.Rules
    monkeypatch.setattr(rules, "card", replace(rules(submission.result).card, parameters=None, flops=None))
    assert not problems(submission, parameters=5_000_000)


def test_times_are_not_verified(submission):
    assert not problems(submission, timings=(Timing("cuda: another", 0.001, 0.1, 3),))
    assert "machine" in trusted(("cost", "timings", 0, "seconds"), {})
    assert "declared" in trusted(("cost", "flops"), {})


def test_board_has_the_cost_in_columns(submission):
    table = costs(Collection((submission.entry(),)), submission.result.task)
    texts = [table.texts(name)[0] for name in ("parameters", "FLOPs", "width", "bytes")]
    assert texts == ["85.7 M", "35.9 G", "768", "3.07 k"] and table.values("FLOPs") == [35_864_285_184]
    assert table.texts("time on its device") == ["500 ms, decoding 100 ms, peak 1 GB (cpu: a processor, fp32)"]
