"""Real and generated recordings are kept apart."""

from types import SimpleNamespace

from cardiobench.core.config import RunConfig
from cardiobench.data import catalog
from cardiobench.protocols.subjects import class_tasks_by_label
from cardiobench.runner.analyze import unmixed_subjects
from cardiobench.runner.plan import real_or_quick


def dataset(modality, generated=False, twin=False):
    spec = SimpleNamespace(modality=modality, generated=generated)
    return SimpleNamespace(spec=spec, generated=generated or twin)


HERE = {
    "ptb_xl": dataset("ecg"),
    "camus": dataset("echo", twin=True),
    "phantom_ecg": dataset("ecg", generated=True),
    "phantom_echo": dataset("echo", generated=True),
}


def test_without_tasks_real_data_is_taken_and_phantoms_only_where_there_is_none():
    chosen, lines = real_or_quick(HERE, {"ecg", "echo"}, RunConfig(models=("m",)))
    assert set(chosen) == {"ptb_xl", "phantom_echo"}
    assert len(lines) == 1 and lines[0].startswith("no real echo data here: the quick suite (phantom_echo)")
    assert real_or_quick(HERE, {"ecg"}, RunConfig(models=("m",)))[1] == []


def test_named_tasks_are_taken_as_they_are():
    chosen, lines = real_or_quick(HERE, {"ecg"}, RunConfig(models=("m",), tasks=("phantom_ecg/cd",)))
    assert set(chosen) == set(HERE) and not lines


def test_a_study_across_datasets_holds_real_or_generated_recordings():
    """A study of CD over real hospitals and a phantom would be won by the phantom."""
    tasks = {name: catalog.task(name) for name in ("ptb_xl/cd", "georgia/cd", "phantom_ecg/cd", "phantom_ecg/af")}
    real, generated = list(tasks.values())[:2], list(tasks.values())[2:]
    across = SimpleNamespace(subjects=class_tasks_by_label)
    found = unmixed_subjects(across, real, generated)
    assert not any({task in real for task in members} == {True, False} for members in found.values())
    assert any(list(members) == real for members in found.values())
