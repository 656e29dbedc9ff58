"""Balanced samples of the datasets that a study looks at side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cardiobench.core.errors import NotApplicable
from cardiobench.protocols.analysis import Analysis
from cardiobench.protocols.base import TaskData
from cardiobench.protocols.representation.subjects import class_names, classes_of

LEAST = 15  # records of a class in a dataset; the folds of a cross-validation need no fewer


@dataclass(frozen=True)
class Drawn:
    """A dataset's share of a study: the same number of records of each class.

    Attributes:
        name: of the dataset.
        features: (n, d), float64.
        labels: codes of `Sample.classes`, (n,).
        patients: of each line, (n,).
        ids: recordings, (n,).
    """

    name: str
    features: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    patients: np.ndarray = field(repr=False)
    ids: np.ndarray = field(repr=False)

    def __len__(self) -> int:
        return len(self.labels)

    def first(self, count: int, classes: int) -> "Drawn":
        """The first lines: classes stand in turn, so that they stay balanced."""
        stop = max(count // classes, 1) * classes
        return Drawn(self.name, *(part[:stop] for part in (self.features, self.labels, self.patients, self.ids)))


@dataclass(frozen=True)
class Sample:
    """The datasets of a study.

    Attributes:
        classes: that all of them have.
        parts: one a dataset.
        left_out: sentences about datasets and classes that could not be used.
    """

    classes: tuple[str, ...]
    parts: tuple[Drawn, ...]
    left_out: tuple[str, ...] = ()

    def first(self, count: int) -> "Sample":
        """At most so many lines of each dataset."""
        parts = tuple(part.first(count, len(self.classes)) for part in self.parts)
        return Sample(self.classes, parts, self.left_out)

    def of_dimensions(self, numbers: np.ndarray) -> "Sample":
        """The same records in some of their dimensions."""
        return replace(self, parts=tuple(replace(part, features=part.features[:, numbers]) for part in self.parts))

    def shuffled(self, seed: int) -> "Sample":
        """The same records with the labels of each dataset in another order, which leaves nothing to learn."""
        rng = np.random.default_rng(seed)
        return replace(self, parts=tuple(replace(part, labels=rng.permutation(part.labels)) for part in self.parts))

    @property
    def names(self) -> tuple[str, ...]:
        """Datasets, in order."""
        return tuple(part.name for part in self.parts)

    def joined(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features (n, d), labels (n,) and dataset numbers (n,) of all lines."""
        numbers = np.repeat(np.arange(len(self.parts)), [len(part) for part in self.parts])
        return (
            np.concatenate([part.features for part in self.parts]),
            np.concatenate([part.labels for part in self.parts]),
            numbers,
        )


def draw(study: Analysis, most: int) -> Sample:
    """Draw from every dataset of a study, all splits, at most `most` records, one of a patient in a class, classes in turn.

    Classes are those that every dataset has at least `LEAST` records of; a dataset with fewer than two such classes is
    left out. Draws of fewer records lie within those of more.

    Raises:
        NotApplicable: no dataset has two classes.
    """
    found, left_out = {}, []
    for task in study.tasks:
        data = study.data(task)
        lines = candidates(data, study.seed)
        enough = [name for name in class_names(task) if len(lines.get(name, ())) >= LEAST]
        if len(enough) < 2:
            counts = ", ".join(f"{name} {len(lines.get(name, ()))}" for name in class_names(task))
            left_out.append(f"{task.dataset} has too few records of two classes ({counts}; {LEAST} needed)")
        else:
            found[task.dataset] = data, lines, enough
    classes = _common([enough for _, _, enough in found.values()])
    while found and len(classes) < 2:  # the dataset with the fewest classes in common with the others goes
        odd = min(found, key=lambda name: sum(len(set(found[name][2]) & set(other)) for _, _, other in found.values()))
        left_out.append(f"{odd} shares fewer than two classes with the others ({', '.join(found.pop(odd)[2])})")
        classes = _common([enough for _, _, enough in found.values()])
    if not found:
        raise NotApplicable("; ".join(left_out))
    parts = tuple(_part(name, data, lines, classes, most) for name, (data, lines, _) in found.items())
    return Sample(classes, parts, tuple(left_out))


def candidates(data: TaskData, seed: int) -> dict[str, np.ndarray]:
    """Class -> shuffled lines, one of a patient; a patient with both of two classes stands for the positive one."""
    order = np.lexsort([data.rows["id"].to_numpy(str)])
    order = order[np.random.default_rng(seed).permutation(len(order))]
    names = classes_of(data)
    taken: set = set()
    found = {}
    for name in reversed(class_names(data.task)):
        lines = order[names[order] == name]
        _, first = np.unique(data.patients[lines].astype(str), return_index=True)
        lines = lines[np.sort(first)]
        if data.task.kind == "binary":
            lines = lines[[patient not in taken for patient in data.patients[lines]]]
            taken |= set(data.patients[lines])
        found[name] = lines
    return found


def _common(lists: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(name for name in lists[0] if all(name in other for other in lists)) if lists else ()


def _part(name: str, data: TaskData, lines: dict[str, np.ndarray], classes: tuple[str, ...], most: int) -> Drawn:
    each = min(max(most // len(classes), 1), *(len(lines[label]) for label in classes))
    chosen = np.stack([lines[label][:each] for label in classes], axis=1).reshape(-1)
    labels = np.tile(np.arange(len(classes)), each)
    ids = data.rows["id"].to_numpy(str)[chosen]
    return Drawn(name, data.features[chosen].astype(np.float64), labels, data.patients[chosen], ids)
