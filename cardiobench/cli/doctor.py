"""Check a model's files, settings, loading and tasks before a run."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cardiobench.core.errors import CardioBenchError, NotApplicable, UnknownName, first_n
from cardiobench.data import catalog
from cardiobench.data.prompts import prompts
from cardiobench.data.spec import Task
from cardiobench.models.base import Encoder, LoadedModel, NativeHeads, TextEncoder
from cardiobench.models.cards import ModelCard, find_card
from cardiobench.models.custom import find_custom, loaded
from cardiobench.models.load import ModelPlan, load_model, plan_model
from cardiobench.models.registry import NO_ADAPTER
from cardiobench.runner.processes import start_processes

if TYPE_CHECKING:
    from cardiobench.embeddings.finding import Finding

Fact = tuple[str, str]
TRIAL_COLUMNS = ("", "what", "found", "expected")
COLUMNS = ("task", "zero-shot", "native", "from its embeddings", "dataset seen in pretraining")


@dataclass(frozen=True)
class Diagnosis:
    """Diagnosis of a model: facts, tasks and problems.

    Attributes:
        facts: Pairs (subject, description) in display order.
        answers: Rows of `COLUMNS` for all tasks with the model's modality.
        problem: Reason why the model cannot be loaded; None if it can.
        trial: Findings of a test transform and encode; empty if not performed.
    """

    facts: tuple[Fact, ...]
    answers: tuple[tuple[str, ...], ...] = ()
    problem: CardioBenchError | None = None
    trial: "tuple[Finding, ...]" = ()


def examine(name: str, *, quick: bool = False, device: str = "auto", **options: Any) -> Diagnosis:
    """Check the files, settings, loading and tasks of a model.

    Args:
        name: Model name for `load_model`.
        quick: Whether to skip reading and downloading weights.
        device: Device of the network, as for `--device` of a run.
        options: Further arguments of `load_model`: revision, weights, pooling, variant, precision and
            trust_remote_code.

    Raises:
        UnknownName: There is no model of this name.
    """
    if (make := find_custom(name)) is not None:
        return examine_custom(name, make, quick=quick, device=device, precision=options.get("precision", "fp32"))
    process = start_processes(device)
    card = find_card(name)
    facts = _card_facts(name, card)
    try:
        plan = plan_model(name, **{key: value for key, value in options.items() if key != "precision"})
        facts += _plan_facts(plan)
        if quick:
            facts += [("weights", "not read"), *_card_preprocessing(card)]
            return Diagnosis(tuple(facts), tuple(_answers(_expected(plan), card)))
        model = load_model(name, device=lambda: process.device, **options)
    except UnknownName:
        raise
    except CardioBenchError as error:
        # Facts from the card do not depend on local files.
        known = card is not None and card.adapter != NO_ADAPTER
        answers = _answers(_by_card(card, options.get("variant")), card) if card and known else ()
        return Diagnosis((*facts, *_card_plan(card), *_card_preprocessing(card)), tuple(answers), error)
    facts += _model_facts(model)
    return Diagnosis(tuple(facts), tuple(_answers(_abilities(model.encoder, plan.card, plan.variant), card)))


def examine_custom(
    name: str, make: Callable[[], Encoder], *, quick: bool = False, device: str = "auto", precision: str = "fp32"
) -> Diagnosis:
    """Check a model from user code with a trial on generated recordings.

    Args:
        name: Model name given by the user.
        make: Function that creates the encoder.
        quick: Whether to skip the trial.
        device: Device of the network, as for `--device` of a run.
        precision: Precision, "fp32" or "bf16"; "auto" selects "fp32".
    """
    from cardiobench.embeddings.trial import try_model

    on = start_processes(device).device
    try:
        chosen = "fp32" if precision == "auto" else precision
        model = loaded(make(), f"{name} is a user model", chosen, on, make)
    except CardioBenchError as error:
        return Diagnosis((("model", name),), (), error)
    facts = [*_card_facts(model.name, model.card), ("loaded by", model.loaded_by), *_model_facts(model)]
    answers = tuple(_answers(_abilities(model.encoder, model.card, ""), model.card))
    return Diagnosis(tuple(facts), answers, trial=() if quick else tuple(try_model(model, on)))


def _card_facts(name: str, card: ModelCard | None) -> list[Fact]:
    if card is None:
        return [("model", name), ("card", "none: licence and pretraining data are unknown")]
    return [
        ("model", card.id),
        ("licence", card.licence),
        ("access", card.access),
        ("public weights", "yes" if card.public_weights else "no: the card says what would be needed"),
        ("pretraining data", card.pretraining_data),
        ("datasets seen in pretraining", card.seen_text),
        ("embedding (card)", _words(card.embedding) or "not described"),
    ]


def _card_plan(card: ModelCard | None) -> list[Fact]:
    """List facts from the card of a model without local files."""
    if card is None:
        return []
    return [
        ("revision (card)", card.revision or "none pinned"),
        *(("weights (card)", f"{file}: SHA-256 {known or 'not known'}") for file, known in card.weights.items()),
        ("pooling of tokens (card)", ", ".join(card.poolings) or "one only"),
        ("variant of preprocessing (card)", ", ".join(card.variants) or "one only"),
        ("text (card)", _prompts(card)),
        ("native outputs (card)", ", ".join(card.native) or "none"),
    ]


def _prompts(card: ModelCard) -> str:
    said = card.text_in(next(iter(card.variants), ""))
    return {"yes": "prompts can be used", "no text tower": "no"}.get(said, f"prompts can be used {said}")


def _card_preprocessing(card: ModelCard | None) -> list[Fact]:
    facts = card.preprocessing if card else {}
    return [(f"preprocessing, {key}", _words(value)) for key, value in facts.items()]


def _plan_facts(plan: ModelPlan) -> list[Fact]:
    facts = [("loaded by", plan.rule), *plan.facts]
    if plan.source is not None:
        pinned = plan.card.revision if plan.card else None
        at = plan.source.commit or "user files: the revision is the digest of the weights"
        facts += [
            ("files", str(plan.source.folder)),
            ("commit", f"{at} (pinned by the card)" if pinned and at == pinned else at),
        ]
        if plan.unpinned:
            unpinned = (
                "the newest commit is used, because the card pins none" if plan.card else "the newest commit is used"
            )
            facts.append(("warning", f"{unpinned}: for the same weights again, give --revision {plan.source.commit}"))
        facts += [
            ("checksum", f"{file}: {plan.source.checksum(file) or 'not known, so not compared'}")
            for file in plan.source.checksums
        ]
    facts += [
        ("pooling of tokens", _choice(plan.pooling, plan.poolings)),
        ("variant of preprocessing", _choice(plan.variant, plan.variants)),
    ]
    return facts


def _model_facts(model: LoadedModel) -> list[Fact]:
    encoder = model.encoder
    facts = [("revision", model.revision)]
    facts += [("weights read", f"{file}: SHA-256 {digest}") for file, digest in model.weight_files.items()]
    facts += [(f"in the embedding key, {key}", _words(value)) for key, value in model.preprocessing.items()]
    sampling = model.sampling
    facts += [
        ("frames", _words(vars(sampling)) if sampling and "echo" in encoder.modalities else "none: it takes ECGs"),
        ("vector", _vector_words(model)),
        ("precision", model.precision),
        *(("preparation of frames", how) for how in (_preparation(encoder),) if how),
        ("text", "prompts can be used" if isinstance(encoder, TextEncoder) else f"no: {_no_text(encoder)}"),
        ("native outputs", ", ".join(encoder.native) if isinstance(encoder, NativeHeads) else "none"),
    ]
    return [*facts, *(("warning", warning) for warning in model.warnings)]


def _preparation(encoder: Encoder) -> str:
    if "torch" not in sys.modules:  # The model has no network, so nothing imports the network's library.
        return ""
    from cardiobench.models.image import preparation

    return preparation(encoder)


def _vector_words(model: LoadedModel) -> str:
    width = f"{model.dim} numbers per part" if model.dim else "as many numbers per part as encode returns"
    return f"{width}; parts of a recording: {model.pooling}"


def _no_text(encoder: Encoder) -> str:
    return getattr(encoder, "no_text_reason", "") or "it has no text tower"


@dataclass(frozen=True)
class _Abilities:
    modalities: tuple[str, ...]
    text: str  # "yes", the reason against it, or the required flag.
    native: tuple[str, ...]


def _abilities(encoder: Encoder, card: ModelCard | None, variant: str) -> _Abilities:
    absent = card.text_in(variant) if card else "no text tower"
    # Without the tokenizer or the text tower, the "yes" of a card does not apply.
    text = "yes" if isinstance(encoder, TextEncoder) else "no text tower" if absent == "yes" else absent
    return _Abilities(encoder.modalities, text, encoder.native if isinstance(encoder, NativeHeads) else ())


def _expected(plan: ModelPlan) -> _Abilities:
    """Return the facts that are known without reading the weights."""
    if plan.card is None:
        return _Abilities(("echo", "ecg"), "known after loading", ())
    return _by_card(plan.card, plan.variant)


def _by_card(card: ModelCard, variant: str | None) -> _Abilities:
    return _Abilities(card.modalities, card.text_in(variant or next(iter(card.variants), "")), card.native)


def _answers(able: _Abilities, card: ModelCard | None) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name in catalog.list_datasets():
        spec = catalog.spec(name)
        if spec.modality not in able.modalities:
            continue
        seen = {True: "yes", False: "no", None: "not known"}[card.saw(name) if card else None]
        for task in spec.tasks:
            native = "yes" if task.target in able.native else "no such output"
            rows.append((task.name, _zero_shot(able.text, task), native, "yes", seen))
    return rows


def _zero_shot(text: str, task: Task) -> str:
    if text == "no text tower":
        return text
    try:
        prompts(task)
    except NotApplicable:
        return "no prompts"
    if task.rules.answer == "number" and task.prompt_grid is None:
        return "no numeric prompts"
    return text


def _choice(chosen: str, offered: tuple[str, ...]) -> str:
    return f"{chosen} (offered: {', '.join(offered)})" if offered else "one only"


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_words(inner)}" for key, inner in value.items())
    return str(value)


def print_diagnosis(diagnosis: Diagnosis, *, every_task: bool = False) -> None:
    """Print the diagnosis; unless `every_task`, tasks with equal entries share a line."""
    from cardiobench.core.console import Console

    console = Console()
    console.table("model", ("what", "it is"), diagnosis.facts)
    if diagnosis.trial:
        lines = [("ok" if one.good else "!!", one.what, one.found, one.expected) for one in diagnosis.trial]
        console.table("one transform and one encode of generated recordings", TRIAL_COLUMNS, lines)
    rows = diagnosis.answers if every_task else list(_grouped(diagnosis.answers))
    console.table("supported tasks" + ("" if every_task else " (-v: every task)"), COLUMNS, rows)


def _grouped(answers: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield one row per group of tasks with equal entries."""
    tasks: dict[tuple[str, ...], list[str]] = {}
    for task, *answer in answers:
        tasks.setdefault(tuple(answer), []).append(task)
    for alike, names in tasks.items():
        datasets = dict.fromkeys(name.partition("/")[0] for name in names)
        yield (names[0] if len(names) == 1 else f"{len(names)} tasks of {first_n(datasets, 12)}", *alike)
