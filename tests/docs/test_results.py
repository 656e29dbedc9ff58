"""Compare the table on the results page with a run."""

import re

import pytest

from cardiobench.core.config import RunConfig
from cardiobench.data import catalog
from cardiobench.runner.run import run


@pytest.mark.slow
def test_table_of_real_records_is_reproduced_by_a_run(root, tmp_path):
    """Check scores and floors of the quick baseline; three decimals allow for other BLAS kernels."""
    lines = re.findall(r"^\| `(ptb_xl/\w+)` \| ecg-morphology \| (\w+) \| ([\d.]+) .*? \| ([\d.]+) \| ([\d.]+) \|$", (root / "docs/results.md").read_text(encoding="utf-8"), re.M)  # fmt: skip
    config = RunConfig(
        models=("cardiobench/ecg-morphology",),
        tasks=("ptb_xl/super", "ptb_xl/rhythm"),
        protocols=("probe", "knn"),
        data_dir=catalog.dataset_folder("ptb_xl_sample") / "data",
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
        allow_missing=True,
        workers=0,
        resamples=50,
    )
    results = {(result.task, result.protocol): result for result in run(config).results}
    assert len(lines) == len(results) == 4
    for task, protocol, *numbers in lines:
        result = results[task, protocol]
        values = (result.score.value, result.floor.value, result.overall["auprc_macro"].value)
        assert [100 * value for value in values] == pytest.approx([float(number) for number in numbers], abs=0.5)
