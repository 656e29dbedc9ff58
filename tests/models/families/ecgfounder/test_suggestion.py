"""Check that the model is suggested for its name without the owner."""

import pytest

from cardiobench.core.errors import UnknownName
from cardiobench.models.load import load_model


@pytest.mark.parametrize("name", ["ecgfounder", "ECGFounder", "ecgfoundr"])
def test_name_without_its_owner_is_suggested(name):
    with pytest.raises(UnknownName, match=r"Did you mean 'PKUDigitalHealth/ECGFounder'\?"):
        load_model(name)
