"""Options of protocols by name: read, checked against what the protocol takes, and part of what it says of itself."""

import json

import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import CardioBenchError, UnknownName
from cardiobench.protocols import list_protocols, option_types, protocol


def made(name, **chosen):
    return protocol(name, RunConfig(models=(), options={name: chosen}))


def test_an_option_is_set_and_recorded():
    found = made("cross_validation", grouped=True, search="flat", sizes=["XS", "S"])
    assert (found.grouped, found.search, found.sizes) == (True, "flat", ("XS", "S"))
    assert found.get_params()["grouped"] is True
    assert made("probe", class_weight=None).class_weight is None


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("cross_validation", "sizes", ["XL"]),
        ("cross_validation", "folds", 0),
        ("cross_validation", "folds", 2.5),
        ("cross_validation", "folds", True),
        ("cross_validation", "search", "quick"),
        ("cross_validation", "grouped", 1),
        ("probe", "penalties", 3),
        ("probe", "class_weight", "heavy"),
        ("zero_shot", "share", float("inf")),
    ],
)
def test_a_value_of_another_kind_is_refused_with_what_is_expected(name, option, value):
    with pytest.raises(CardioBenchError, match=rf"{name}\.{option}=.*Give a value such as "):
        made(name, **{option: value})


def test_names_that_are_none():
    with pytest.raises(UnknownName, match="Did you mean 'refits'"):
        made("probe", refitts=2)
    with pytest.raises(UnknownName, match="svm"):
        made("cross_validation", grids={"svm": {"C": [1]}})
    with pytest.raises(CardioBenchError, match="grid of tree needs the keys max_depth, min_samples_leaf"):
        made("cross_validation", grids={"tree": {"max_depth": [3]}})


def test_an_option_by_name_wins_over_the_setting_of_the_run():
    config = RunConfig(models=(), seed=3, options={"probe": {"seed": 4}})
    assert protocol("probe", config) == protocol("probe", seed=4)
    assert protocol("probe", config, seed=5).seed == 5


def test_a_grid_that_is_given_leaves_the_others_as_they_are():
    grids = made("cross_validation", grids={"tree": {"max_depth": [3], "min_samples_leaf": [1]}}).grids
    assert grids["tree"] == {"max_depth": [3], "min_samples_leaf": [1]}
    assert grids["mlp"] == made("cross_validation").grids["mlp"]


@pytest.mark.parametrize("name", list_protocols())
def test_every_protocol_takes_its_own_defaults(name):
    default = protocol(name)
    values = vars(default)
    assert option_types(name).keys() == values.keys()
    # Lists come back where a grid's values are tuples, so what is stamped is compared.
    assert json.dumps(protocol(name, **values).get_params()) == json.dumps(default.get_params())
