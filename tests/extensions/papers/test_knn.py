"""Test the published kNN: k is chosen by accuracy on balanced folds, as in scikit-learn; refusals."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from cardiobench.core.errors import NotApplicable
from cardiobench.core.versions import component_version
from cardiobench.data import catalog
from cardiobench.extensions.papers.knn import PaperNeighbours
from cardiobench.extensions.papers.probe import PaperProbe
from cardiobench.protocols import protocol
from cardiobench.protocols.knn import NearestNeighbours
from cardiobench.protocols.probe import LinearProbe
from tests.protocols.conftest import binary, regression  # noqa: F401  # Fixtures, taken by name.


@pytest.mark.parametrize("kind", ["regression", "binary"])
def test_k_equals_scikit_learn_in_same_folds(request, kind):
    """Check that five folds are stratified by class, or grouped by patient for regression, without standardisation."""
    data = request.getfixturevalue(kind)
    known = data.indices("train", "validation")
    x, y, patients = data.features[known].astype(float), data.labels[known], data.patients[known]
    folds = StratifiedKFold(5, shuffle=True, random_state=42) if data.task.classes else GroupKFold(5)
    model, losses = KNeighborsClassifier if data.task.classes else KNeighborsRegressor, {}
    for k in PaperNeighbours().neighbours:
        peer = model(n_neighbors=k, metric="cosine")
        answers = cross_val_predict(peer, x, y, groups=patients, cv=folds)
        losses[k] = -accuracy_score(y, answers) if data.task.classes else np.abs(answers - y).mean()
    output = PaperNeighbours(refits=3).predict(data, None, "")
    assert output.details["k"] == min(losses, key=losses.get)
    assert len(set(losses.values())) > 3, "different values of k"
    assert (output.details["refits"], output.refits, output.validation, output.inner) == (0, (), None, None)


def test_settings_no_paper_defines_are_refused():
    for made in (PaperNeighbours(), PaperProbe()):
        with pytest.raises(NotApplicable, match="several classes"):
            made.check(catalog.task("phantom_ecg/findings"))


@pytest.mark.parametrize(
    ("name", "own", "published"), [("knn", NearestNeighbours, PaperNeighbours), ("probe", LinearProbe, PaperProbe)]
)
def test_option_selects_class_and_keeps_keys(name, own, published):
    assert type(protocol(name)) is own and type(protocol(name, profile="paper")) is published
    assert component_version(own) == component_version(published)
    assert protocol(name).get_params() | {"profile": "paper"} == protocol(name, profile="paper").get_params()
