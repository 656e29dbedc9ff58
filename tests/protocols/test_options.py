"""Options of protocols by name: read, checked against what the protocol takes, and part of what it says of itself."""

import json
from dataclasses import dataclass

import pytest
from pydantic import PositiveInt

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig, CardioBenchError, UnknownName
from cardiobench.protocols import list_protocols, option_types, protocol
from cardiobench.protocols.knn import NearestNeighbours
from cardiobench.protocols.options import validated
from cardiobench.protocols.probe import LinearProbe


def made(name, **chosen):
    return protocol(name, RunConfig(models=(), options={name: chosen}))


def test_an_option_is_set_and_recorded():
    found = made("probe", refits=4, penalties=[0.1, 1])
    assert (found.refits, found.penalties) == (4, (0.1, 1.0))
    assert found.get_params()["refits"] == 4
    assert made("probe", class_weight=None).class_weight is None


@pytest.mark.parametrize("kind", [LinearProbe, NearestNeighbours])
def test_a_class_refuses_the_recipe_of_another(kind):
    with pytest.raises(BadConfig, match=r"has the recipe 'default', got profile 'paper'. Make it with"):
        kind(profile="paper")


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("knn", "neighbours", [0]),
        ("knn", "folds", 0),
        ("knn", "folds", 2.5),
        ("knn", "folds", True),
        ("knn", "profile", "quick"),
        ("probe", "penalties", 3),
        ("probe", "class_weight", "heavy"),
        ("zero_shot", "share", float("inf")),
    ],
)
def test_a_value_of_another_kind_is_refused_with_what_is_expected(name, option, value):
    with pytest.raises(CardioBenchError, match=rf"{name}\.{option}=.*Give a value such as "):
        made(name, **{option: value})


@dataclass(frozen=True)
class Trained(LinearProbe):
    """A protocol with an option that is nothing by default."""

    epochs: PositiveInt | None = None


def test_no_value_is_advised_where_an_option_has_none_by_default():
    with pytest.raises(CardioBenchError, match=r"probe\.epochs=0: Input should be greater than 0\. Leave it out\.$"):
        validated(Trained, {"epochs": 0})


def test_names_that_are_none():
    with pytest.raises(UnknownName, match="Did you mean 'refits'"):
        made("probe", refitts=2)


def test_an_option_by_name_wins_over_the_setting_of_the_run():
    config = RunConfig(models=(), seed=3, options={"probe": {"seed": 4}})
    assert protocol("probe", config) == protocol("probe", seed=4)
    assert protocol("probe", config, seed=5).seed == 5


@pytest.mark.parametrize("name", list_protocols())
def test_every_protocol_takes_its_own_defaults(name):
    default = protocol(name)
    values = vars(default)
    assert option_types(name).keys() == values.keys()
    # Lists come back where a grid's values are tuples, so what is stamped is compared.
    assert json.dumps(protocol(name, **values).get_params()) == json.dumps(default.get_params())
