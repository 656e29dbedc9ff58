"""SHAP values of each of the five classifiers, by the method that is exact for it, or close and affordable.

* XGBoost: the booster's own TreeSHAP (`pred_contribs`), of the logit.
* logistic regression: closed form, (x - mean of the background) x coefficient, of the logit.
* decision tree, random forest: `shap.TreeExplainer`, of the probability.
* MLP: `shap.DeepExplainer` on 100 records of the background, of the logit. KernelExplainer is not used: by default it
  keeps ten features, and a ranking of fifty of hundreds is then noise.
"""

from functools import singledispatch
from types import ModuleType
from typing import Any

import numpy as np

from cardiobench.core.errors import MissingExtra
from cardiobench.protocols.grid_search.classifiers.forest import Forest
from cardiobench.protocols.grid_search.classifiers.logistic import Logistic
from cardiobench.protocols.grid_search.classifiers.mlp import Network
from cardiobench.protocols.grid_search.classifiers.tree import Tree
from cardiobench.protocols.grid_search.classifiers.xgboost import Boosted

BACKGROUND = 100  # Records that represent "feature absent" in the explanation of the MLP.


def importance(model: Any, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Return |SHAP| of each feature for each record, the mean over the model's outputs, (n, d).

    Args:
        model: A trained classifier (`cross_validation.classifiers`).
        features: Records to explain, (n, d).
        background: Records that the model was trained on, (m, d).
    """
    return np.abs(shap_values(model, features, background)).mean(axis=2)


@singledispatch
def shap_values(model: Any, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Return SHAP values (n, d, outputs); one output, of the positive class, where there are two classes."""
    raise TypeError(f"no SHAP values for a {type(model).__name__}")


@shap_values.register
def _(model: Boosted, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    import xgboost

    data = xgboost.DMatrix(features[:, model.selected].astype(np.float32), nthread=1)
    given = model.booster.predict(data, pred_contribs=True, strict_shape=True)[:, :, :-1]  # The last one is the offset.
    values = np.zeros((len(features), model.n_features, given.shape[1]))
    values[:, model.selected] = given.transpose(0, 2, 1)
    return values


@shap_values.register
def _(model: Logistic, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    away = features - background.mean(axis=0)
    return away[:, :, None] * model.coefficients.T[None]


@shap_values.register
def _(model: Tree, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    given = _trees(model.model, features[:, model.selected])
    values = np.zeros((len(features), model.n_features, given.shape[2]))
    values[:, model.selected] = given
    return values


@shap_values.register
def _(model: Forest, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    return _trees(model.model, features)


@shap_values.register
def _(model: Network, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    import torch

    # Explained as the network sees them: scaling a feature leaves its SHAP value alone.
    layers: list[torch.nn.Module] = []
    for weights, bias in zip(model.model.coefs_, model.model.intercepts_, strict=True):
        layers += [torch.nn.ReLU()] if layers else []
        linear = torch.nn.Linear(*weights.shape)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weights.T))
            linear.bias.copy_(torch.from_numpy(bias))
        layers.append(linear)
    chosen = background[np.linspace(0, len(background) - 1, min(BACKGROUND, len(background))).astype(int)]
    reference, explained = (torch.from_numpy(model.standardise(part)) for part in (chosen, features))
    explainer = _shap().DeepExplainer(torch.nn.Sequential(*layers), reference)
    values = explainer.shap_values(explained, check_additivity=False)
    return np.asarray(values, dtype=np.float64).reshape(*features.shape, -1)


def _trees(model: Any, features: np.ndarray) -> np.ndarray:
    values = _shap().TreeExplainer(model).shap_values(features.astype(np.float32))
    return values[:, :, 1:] if values.shape[2] == 2 else values


def _shap() -> ModuleType:
    try:
        import shap
    except ImportError:
        raise MissingExtra("SHAP values", "analysis", "shap") from None
    return shap
