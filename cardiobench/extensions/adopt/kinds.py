"""The kinds of task that labels of a table can be, by the form of their answers."""

from cardiobench.tasks.task import list_kinds, task_kind


def kind_of(answer: str, *, two_classes: bool = False) -> str:
    """Return the kind of task with that form of answer."""
    kinds = ((name, task_kind(name)) for name in list_kinds())
    return next(name for name, rules in kinds if (rules.answer, rules.two_classes) == (answer, two_classes))


TWO_CLASSES, CLASSES = kind_of("class", two_classes=True), kind_of("class")
NUMBER, LABELS = kind_of("number"), kind_of("labels")
