"""Test positions of ids."""

import numpy as np
import pyarrow as pa

from cardiobench.embeddings.positions import Positions


def test_ids_are_found_in_any_order():
    ids = [f"r{number}" for number in range(100)]
    wanted = Positions(ids)
    for names in (ids[:40], ids[40:70], ids[10:20], ["x", "r99"], ids[:3], ["r5", "r4"], [*ids[98:], "x"], ["x"], ids):
        expected = [ids.index(name) if name in ids else -1 for name in names]
        assert wanted.find(pa.array(names)).tolist() == expected


def test_ids_that_continue_in_order_need_no_index():
    wanted = Positions([f"r{number}" for number in range(10)])
    for start in (0, 5):
        found = wanted.find(pa.array([f"r{number}" for number in range(start, start + 5)]))
        assert np.array_equal(found, np.arange(start, start + 5))
    assert "_index" not in vars(wanted)
