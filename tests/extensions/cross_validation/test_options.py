"""Test options of the protocol by name."""

import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import CardioBenchError, UnknownName
from cardiobench.protocols import protocol
from cardiobench.protocols.grid_search.grids import GRIDS


def made(**chosen):
    return protocol("cross_validation", RunConfig(options={"cross_validation": chosen}))


def test_option_of_one_word_is_recorded_as_a_list():
    found = made(grouped=True, search="flat", sizes=["XS", "S"], classifiers="tree")
    assert (found.grouped, found.search, found.sizes, found.classifiers) == (True, "flat", ("XS", "S"), ("tree",))
    assert found.get_params()["grouped"] is True


@pytest.mark.parametrize(
    ("option", "value"), [("sizes", ["XL"]), ("sizes", "XL"), ("folds", 0), ("search", "quick"), ("grouped", 1)]
)
def test_value_of_another_type_is_refused_with_the_expected_one(option, value):
    with pytest.raises(CardioBenchError, match=rf"cross_validation\.{option}=.*Give a value such as "):
        made(**{option: value})


def test_given_grid_keeps_the_other_grids():
    assert made(grids={"tree": {"max_depth": [3], "min_samples_leaf": [1]}}).grids == {
        **GRIDS,
        "tree": {"max_depth": [3], "min_samples_leaf": [1]},
    }
    with pytest.raises(UnknownName, match="svm"):
        made(grids={"svm": {"C": [1]}})
    with pytest.raises(CardioBenchError, match="grid of tree needs the keys max_depth, min_samples_leaf"):
        made(grids={"tree": {"max_depth": [3]}})
