"""Adapters of registered models, by name."""

from collections.abc import Callable
from importlib import import_module

from cardiobench.core.errors import BadModel, MissingExtra
from cardiobench.models.base import Encoder
from cardiobench.models.own_code import check_factory, import_code

# Adapter of a model card -> function that makes its encoder. Arguments are the card and, for a model without weights, a
# pooling if the card has several; for other models the files, a pooling and a variant.
ADAPTERS = {
    "constant": "cardiobench.models.baselines.constant:Constant",
    "random-vit": "cardiobench.models.baselines.random_vit:RandomVit",
    "random-xresnet1d101": "cardiobench.models.baselines.random_xresnet1d101:load",
    "metadata": "cardiobench.models.baselines.metadata:Metadata",
    "pixel-motion": "cardiobench.models.baselines.pixel_motion:PixelMotion",
    "ecg-morphology": "cardiobench.models.baselines.ecg_morphology:EcgMorphology",
    "minirocket": "cardiobench.models.baselines.minirocket:MiniRocket",
}
BY_FILES = "files"  # Adapter of cards whose files determine the library that loads them.
NO_ADAPTER = "none"  # Adapter of cards whose model cannot be loaded outside its authors' institution.


def adapter(name: str) -> Callable[..., Encoder]:
    """Return the function that builds the encoder of a registered model.

    Raises:
        BadModel: There is no adapter with this name.
        MissingExtra: A required package is not installed.
    """
    location = ADAPTERS.get(name, name)
    module, _, attribute = location.partition(":")
    if not attribute:
        raise BadModel(f"no adapter '{name}'. Give 'module:class', or one of: {', '.join(sorted(ADAPTERS))}.")
    if module.partition(".")[0] != "cardiobench":
        found = getattr(import_code(module, f"the adapter {name}"), attribute, None)
        return check_factory(found, f"the adapter {name}")
    try:
        return getattr(import_module(module), attribute)
    except AttributeError:
        raise BadModel(f"no adapter '{name}': {module} has no {attribute}.") from None
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("cardiobench"):
            raise BadModel(
                f"no adapter '{name}': there is no module {error.name}. Correct the adapter in the card."
            ) from error
        raise MissingExtra(f"the model adapter '{name}'", "models", error.name or "torch") from error
