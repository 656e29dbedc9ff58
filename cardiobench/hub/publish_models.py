"""Model repositories of the baselines: their cards, without weights; results pushed to a card are kept."""

from collections.abc import Sequence

from cardiobench.core.command import command
from cardiobench.core.errors import LicenceError
from cardiobench.core.front_matter import join_card
from cardiobench.core.registry import look_up
from cardiobench.hub import cards
from cardiobench.hub.commit import RepoOptions, Snapshot, Target
from cardiobench.hub.publish import Publication
from cardiobench.models.cards import ModelCard, card, list_models

OWN = "cardiobench/"
USE = """
## How to use

```
pip install 'cardiobench[models]'
accelerate launch -m cardiobench.eval --model {id}
```
"""


def publications(names: Sequence[str], namespace: str, *, private: bool = False) -> list[Publication]:
    """Return the repositories of these baselines; of all if none are named.

    Raises:
        UnknownName: There is no such model.
        LicenceError: The model belongs to somebody else.
    """
    known = look_up((name if "/" in name else OWN + name for name in names), card) or [
        card(name) for name in list_models() if name.startswith(OWN)
    ]
    for model_card in known:
        if not model_card.id.startswith(OWN):
            raise LicenceError(
                f"{model_card.id} is not a model of this project: its repository is its authors'. "
                f"Results go there with: {command('push', 'RESULTS', '--to', model_card.id)}"
            )
    return [publication(model_card, namespace, private=private) for model_card in known]


def publication(model: ModelCard, namespace: str, *, private: bool = False) -> Publication:
    """Return the repository of one baseline."""
    target = Target("model", f"{namespace}/{model.id.removeprefix(OWN)}")
    text = hub_card(model, target.id)

    def plan_changes(snapshot: Snapshot) -> dict[str, bytes]:
        old = cards.text_of(snapshot.read("README.md"), f"README.md of {snapshot.target}")
        return {
            "README.md": cards.with_block(text, cards.results_block(old, f"README.md of {snapshot.target}")).encode()
        }

    return Publication(target, plan_changes, RepoOptions(private), "CardioBench model card")


def hub_card(model: ModelCard, repository: str) -> str:
    """Return the card with the front matter of the Hub, under the name of its repository.

    The command keeps the registered name, because a repository without weights cannot be loaded by its own name.
    """
    front = {
        "license": model.licence.lower(),
        "library_name": "cardiobench",
        "tags": ["cardiology", "cardiobench", "baseline", *model.modalities],
    }
    return join_card(front, f"{model.body.replace(model.id, repository)}\n{USE.format(id=model.id)}")
