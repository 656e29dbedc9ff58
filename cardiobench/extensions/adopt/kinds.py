"""Task kinds that a label table can express, by form of answer."""

from cardiobench.tasks.task import list_kinds, task_kind


def kind_of(answer: str, *, two_classes: bool = False) -> str:
    """Return the task kind with the given form of answer."""
    kinds = ((name, task_kind(name)) for name in list_kinds())
    return next(name for name, rules in kinds if (rules.answer, rules.two_classes) == (answer, two_classes))


TWO_CLASSES, CLASSES = kind_of("class", two_classes=True), kind_of("class")
NUMBER, LABELS = kind_of("number"), kind_of("labels")
