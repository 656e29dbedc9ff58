"""Settings of a model's input, with the card, file or option that states them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from cardiobench.core.errors import BadModel

if TYPE_CHECKING:
    from pydantic import ValidationError

OWN = "cardiobench.json"
"""File next to the weights with settings of the input."""
OPTION = "--preprocessing"
MOST_PROBLEMS = 3


@dataclass(frozen=True, eq=False)
class Stated(Mapping[str, Any]):
    """Settings of a model's input and where they are stated.

    Attributes:
        sources: Mapping from source, as messages name it, to its settings; later sources take precedence.
    """

    sources: Mapping[str, Mapping[str, Any]]

    def __getitem__(self, key: str) -> Any:
        return self.sources[self._source(key)][key]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(key for settings in self.sources.values() for key in settings))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def only(self, keys: Collection[str]) -> Self:
        """Return some of the settings."""
        return type(self)({name: {key: one[key] for key in one if key in keys} for name, one in self.sources.items()})

    def where(self, keys: Iterable[str]) -> str:
        """Return the sources of some settings as text; without any of them, the option, which can state each."""
        found = {self._source(key) for key in keys if key in self}
        return " and ".join(name for name in self.sources if name in found) or OPTION

    def check_keys(self, known: Collection[str], name: str) -> None:
        """Refuse settings that are not known; raises `BadModel`."""
        if unknown := sorted(key for key in self if key not in known):
            raise BadModel(f"{name}: {self.where(unknown)} has unknown keys {unknown}. Known: {', '.join(known)}.")

    def refused(self, name: str, error: "ValidationError") -> BadModel:
        """Return the error that names each invalid setting of a model, its value and its source."""
        problems: dict[str, list[str]] = {}
        for one in error.errors():
            problems.setdefault(str(one["loc"][0]) if one["loc"] else "", []).append(one["msg"])
        shown = [
            (f"{key}={self[key]!r:.100}: " if key in self else f"{key}: " if key else "") + ", or ".join(found)
            for key, found in list(problems.items())[:MOST_PROBLEMS]
        ]
        return BadModel(f"{name}: {'; '.join(shown)}. Correct {self.where(problems if any(problems) else self)}.")

    def _source(self, key: str) -> str:
        for name in reversed([*self.sources]):
            if key in self.sources[name]:
                return name
        raise KeyError(key)
