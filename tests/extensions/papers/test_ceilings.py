"""Check human ceilings: every row has a source and matches a task; ceilings of ECG labels follow from the readers' counts."""

import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score

from cardiobench.data import catalog
from cardiobench.extensions.papers.anchors import CEILINGS, human_ceilings


def test_rows_have_source_setting_and_real_task():
    table = pd.read_csv(CEILINGS, dtype=str)
    assert table.notna().all().all()
    met = {ceiling for task in catalog.list_tasks() for ceiling in human_ceilings(task)}
    assert {(row.metric, row.setting) for row in table.itertuples()} == {(c.metric, c.setting) for c in met}
    assert human_ceilings("phantom_echo/view") == () and human_ceilings("cardiacnet/asd") == ()
    assert [c.low for c in human_ceilings("echonet_pediatric/ef")] == [3.7], (
        "adults' readings are no ceiling for children"
    )


@pytest.mark.parametrize(
    ("task", "both", "only_first", "only_second"), [("ptb_xl/cd", 75, 10, 8), ("ptb_xl/af", 10, 0, 4)]
)
def test_ceilings_of_two_cardiologists_on_827_ecgs(task, both, only_first, only_second):
    """Test two readers with 85 and 83 CD (75 agree) and 10 and 14 AF (10 agree) against kappa and weighted F1 of scikit-learn."""
    first = [1] * both + [1] * only_first + [0] * only_second + [0] * (827 - both - only_first - only_second)
    second = [1] * both + [0] * only_first + [1] * only_second + [0] * (827 - both - only_first - only_second)
    ceilings = {ceiling.metric: ceiling for ceiling in human_ceilings(task)}
    assert ceilings["kappa"].low == pytest.approx(cohen_kappa_score(first, second), abs=6e-4)
    values = []
    for truth, answer in ((first, second), (second, first)):
        weight = [1 / truth.count(label) for label in truth]  # The classes have equal size.
        values.append(f1_score(truth, answer, average="macro", sample_weight=weight))
    assert (ceilings["f1_macro"].low, ceilings["f1_macro"].high) == pytest.approx(sorted(values), abs=6e-4)
