"""Verify submissions: score their predictions again and compare every field."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from huggingface_hub.errors import HTTPError

from cardiobench.core.errors import BadData, CardioBenchError, MissingData, one_line
from cardiobench.core.foreign import MOST_BYTES
from cardiobench.core.versions import component_version
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.hub.api import Account, call, connect, whoami
from cardiobench.hub.commit import MAIN, Snapshot, Target, read_snapshot
from cardiobench.hub.local_scores import without_small_cells
from cardiobench.hub.naming import wrong_names
from cardiobench.hub.outgoing import not_a_benchmark_score
from cardiobench.hub.results_dataset import predictions_path
from cardiobench.hub.submission import additions
from cardiobench.leaderboard.answers import answers_of, equal_answers, read_answers, read_refits
from cardiobench.leaderboard.conditions import contradictions, declared_conditions
from cardiobench.leaderboard.costs import other_cost
from cardiobench.leaderboard.differences import (
    DECLARED,
    OF_MODEL,
    Leaf,
    differences,
    leaves,
    missing_sentences,
    trusted,
)
from cardiobench.leaderboard.pull_request import ANSWERS, DATA, digests, owner, read_base, refused_files
from cardiobench.leaderboard.rebuild import Rebuilt, Rules, rebuild
from cardiobench.leaderboard.rows import differing_rows
from cardiobench.leaderboard.source import read_entries
from cardiobench.leaderboard.submissions import count_tries, question_of
from cardiobench.report.plots.style import shorten
from cardiobench.results.collect import ResultEntry
from cardiobench.results.consistency import check_consistency, missing_parts
from cardiobench.results.record import NOT_SEEN, reason_given
from cardiobench.results.refits import NO_TRAINING, TRAINING_SEEDS
from cardiobench.results.score_result import OLDER_RULES, ScoreResult
from cardiobench.tasks.answers import RefitAnswers

REFUSALS = (
    *(CardioBenchError, HTTPError, OSError, ArithmeticError, AttributeError, LookupError, MemoryError),
    *(RecursionError, TypeError, ValueError),
)
"""What reading and judging a submission can raise: errors of this package, of the Hub's client, of parsers, and of
calculations with untrusted numbers. They refuse this submission and no other."""
LONGEST_LINE = 1_000
"""Maximum number of characters of a shown line, which may be untrusted."""
MOST_FILES = 1_000
"""Maximum number of files that a submission adds."""
SHARED = {"task", "metric", "higher_is_better", "unit", "coverage", "dataset"}
VALUES = {"value", "n", "n_patients", "positives", "patients", "auprc"}
"""Fields shared by results of older and current rules, including scores."""
REFITS = "its interval and verdict cover refits or seeds; only a lower bound on the width was verified"
PRIVATE_DATA = "it uses private data of the submitter"
PERMUTED_LABELS = "its p-value is of refits on embeddings, which are not here; by permutations of the fixed answers, judged at a third of the level,"


@dataclass(frozen=True)
class Check:
    """Outcome for one result, or for one forbidden file of a submission.

    Attributes:
        name: Submitter, model, task and protocol, or the file name.
        problems: Differences from the claimed values; empty if all comparable fields agree.
        not_verifiable: Facts that the predictions do not show, with the reason; empty if there are none.
        older_rules: Whether the result was scored under older rules, so that only values were compared.
        on_trust: Facts taken on trust for this result, in addition to `differences.TRUSTED`.
        submissions: Number of different answers that the owner submitted to the same question, including this one; the
            board corrects for it (`submissions.question_of`).
        equal_to: Other models with the same answers, and their owners.
    """

    name: str
    problems: tuple[str, ...]
    not_verifiable: str = ""
    older_rules: bool = False
    on_trust: tuple[str, ...] = ()
    submissions: int = 1
    equal_to: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Return remarks on a result without problems."""
        older = [f"older rules: {OLDER_RULES}; its values were compared"] if self.older_rules else []
        rest = [f"not verifiable: {self.not_verifiable}"] if self.not_verifiable else []
        tries = [f"one of {self.submissions} submissions of its owner for the task"] if self.submissions > 1 else []
        equal = [f"the same answers as {other}" for other in self.equal_to]
        return (*older, *rest, *(f"on trust: {field}" for field in self.on_trust), *tries, *equal)

    @property
    def outcome(self) -> str:
        """Outcome as a short text."""
        if self.problems:
            return "FAILED"
        return "not verifiable" if self.not_verifiable else "older rules" if self.older_rules else "ok"


def open_pull_requests(repository: str) -> list[str]:
    """Return the revisions of a dataset's open pull requests, oldest first."""
    api = connect()
    listed = call(
        Target("dataset", repository),
        lambda: list(api.get_repo_discussions(repository, repo_type="dataset", discussion_type="pull_request")),
    )
    return [f"refs/pr/{one.num}" for one in sorted(listed, key=lambda one: one.num) if one.status in ("open", "draft")]


def verify_pull_requests(
    repository: str, data_dir: Path | None = None, revisions: Sequence[str] | None = None
) -> Iterator[tuple[str, list[Check]]]:
    """Verify each open pull request of a dataset alone: what one of them raises is its own refusal.

    Args:
        repository: Dataset of results.
        data_dir: Folder with raw or prepared data.
        revisions: Pull requests; None for all open ones.

    Yields:
        Revision such as `refs/pr/3`, and its checks.

    Raises:
        HubError: The dataset does not exist, or the Hub is unreachable.
    """
    for revision in open_pull_requests(repository) if revisions is None else revisions:
        try:
            checks = verify_submission(repository, revision, data_dir)
        except REFUSALS as error:
            checks = [Check(revision, (_refusal(error),))]
        yield revision, checks


def _refusal(error: BaseException) -> str:
    """Return what a submission raised, as the reason of its refusal."""
    if isinstance(error, CardioBenchError):
        return str(error)
    return f"it cannot be judged: {type(error).__name__} {one_line(error)}"


def _wrong_rows(content: bytes, user: str) -> list[str]:
    try:
        return list(differing_rows(content, user))
    except REFUSALS as error:
        return [_refusal(error)]


def verify_submission(repository: str, revision: str, data_dir: Path | None = None) -> list[Check]:
    """Verify all results that a revision adds to the main branch of a dataset.

    Args:
        repository: Dataset of results.
        revision: Revision such as `refs/pr/3`; for the main branch, all results are verified.
        data_dir: Folder with raw or prepared data; by default local data, else data on the Hub.

    Raises:
        HubError: The dataset or revision does not exist, or the Hub is unreachable.
    """
    files = read_submission(repository, revision)
    entries, problems = read_entries(files.data, ScoreResult.parse)
    unreadable = {one.file.partition(": ")[0] for one in problems if ": " not in one.file}
    every = read_entries({**files.data, **files.earlier}, ScoreResult.parse)[0]
    counts = count_tries(every)
    answers = answers_of(lambda path: files.answers.get(path) or files.read(path))
    used = {predictions_path(entry.result, entry.pushed_by) for entry in entries}
    return [
        *(Check(path, (reason,)) for path, reason in files.refused.items()),
        *(Check(path, ("no result of the submission refers to it",)) for path in files.answers if path not in used),
        *(Check(one.file, (one.message,)) for one in problems),
        *(
            Check(path, tuple(wrong))
            for path, content in files.data.items()
            if path not in unreadable and (wrong := _wrong_rows(content, owner(path)))
        ),
        *(
            replace(
                check(entry, files.answers, data_dir),
                submissions=counts[question_of(entry)],
                equal_to=equal_answers(entry, every, answers),
            )
            for entry in entries
        ),
    ]


@dataclass(frozen=True)
class Submission:
    """Files of a submission.

    Attributes:
        refused: Mapping from forbidden path to reason.
        data: Mapping from path to content of added result files.
        answers: Mapping from path to content of added prediction files.
        earlier: Mapping from path to content of existing result files.
        read: Function that returns the content of an existing file; None if there is none.
    """

    refused: Mapping[str, str]
    data: Mapping[str, bytes]
    answers: Mapping[str, bytes]
    earlier: Mapping[str, bytes]
    read: Callable[[str], bytes | None] = lambda path: None


def read_submission(repository: str, revision: str) -> Submission:
    """Read the files that a revision adds to the main branch; for the main branch itself, read all files."""
    api = connect()
    user, target = whoami(api), Target("dataset", repository, revision)

    def read() -> Submission:
        new = read_snapshot(api, target, user, None)
        refused, known = ({}, set()) if revision == MAIN else _compare_with_main(new, user)
        added = sorted(path for path in new.files if path not in refused and path not in known)
        if len(added) > MOST_FILES and revision != MAIN:
            raise BadData(f"it adds {len(added):,} files, but at most {MOST_FILES:,} are allowed")
        refused |= {path: why for path, why in new.too_large(".*", MOST_BYTES).items() if path in added}
        added = [path for path in added if path not in refused]
        data, answers = (
            {path: new.read(path) or b"" for path in added if pattern.fullmatch(path)} for pattern in (DATA, ANSWERS)
        )
        before = sorted(path for path in known if path in new.files and DATA.fullmatch(path))
        return Submission(refused, data, answers, {path: new.read(path) or b"" for path in before}, new.read)

    return call(target, read)


def _compare_with_main(new: Snapshot, user: Account) -> tuple[dict[str, str], set[str]]:
    """Return a mapping from forbidden path to reason, and the paths at the commit where the revision branched off."""
    api, target = new.api, new.target
    base = read_base(api, target, user)
    main = read_snapshot(api, Target(target.kind, target.id), user, None)
    author = ""
    if target.pull_request:
        author = api.get_discussion_details(target.id, target.pull_request, repo_type=target.kind).author
    refused = refused_files(digests(new), digests(base), digests(main), author)
    return dict(refused), set(base.files)


def check(entry: ResultEntry, answers: Mapping[str, bytes], data_dir: Path | None = None) -> Check:
    """Compare a submitted result with the one rebuilt from its predictions.

    Args:
        entry: Result and its submitter.
        answers: Mapping from path to content of submitted prediction files.
        data_dir: Folder with raw or prepared data.
    """
    result, path = entry.result, predictions_path(entry.result, entry.pushed_by)
    name = shorten(f"{entry.pushed_by}: {result.model.get('name')}, {result.task}, {result.label}", LONGEST_LINE)
    if more := list(additions(result)):
        return Check(name, tuple(more))
    if lacking := missing_parts(result) or wrong_names(result):
        return Check(name, tuple(lacking))
    if result.dataset.get("local") and not _is_here(result, data_dir):
        problems = [f"it is inconsistent: {why}" for why in check_consistency(result)]
        if without_small_cells(result).to_json() != result.to_json():
            problems.append("it has small groups or texts of private data. Push it again, which leaves them out")
        return Check(name, tuple(problems), PRIVATE_DATA)
    reason, on_trust = "", False
    try:
        problems = [f"it is inconsistent: {why}" for why in check_consistency(result)]
        problems += [why for why in not_a_benchmark_score(result) if why != OLDER_RULES]
        rules = Rules(result)
        if result.dataset.get("local") and not catalog.spec(rules.task.dataset).local:
            problems.append(f"it calls {rules.task.dataset} private data of the submitter, but this dataset is public")
        problems += contradictions(result)
        problems += _other_protocol(rules)
        problems += other_cost(rules.card, result)
        if told := reason_given(rules.model, [rules.task.target], rules.task.name):
            return Check(name, (*problems, told))
        on_trust = rules.card is None
        if path in answers:
            content = answers[path]
            refits = read_refits(content, rules.task, result.refits)
            again = rebuild(rules, read_answers(content, rules.task), refits, data_dir)
            problems += _differences(rules, again)
            problems += _invented_refits(rules, refits)
            reason = _of_refits(rules, again)
        elif catalog.spec(rules.task.dataset).redistributable:
            problems.append(f"there is no {path}. Push with --with-predictions")
        else:
            problems += _differing_facts(rules)
            reason = f"the ids of {rules.task.dataset} may not be published, so its predictions are not here"
    except REFUSALS as error:
        problems = [_refusal(error)]
    declared: tuple[str, ...] = (f"seen_in_pretraining: {DECLARED}",) if on_trust else ()
    declared += (f"model: {NOT_SEEN}",) if result.given_embeddings else ()
    declared += tuple(f"condition: {one} is declared by the submitter; no place" for one in declared_conditions(result))
    return Check(name, tuple(problems), reason, result.outdated, declared)


def _is_here(result: ScoreResult, data_dir: Path | None) -> bool:
    """Return whether private data of a result can be compared: it has the name of a public dataset, or its data is here.

    Private data is known by its digest, because others may use its name.
    """
    name = result.dataset["name"]
    if name not in catalog.list_datasets():
        return False
    if not catalog.spec(name).local:
        return True
    try:
        return open_dataset(name, data_dir, need_media=False).table.digest == result.dataset.get("digest")
    except MissingData:
        return False


def _other_protocol(rules: Rules) -> Iterator[str]:
    """Yield a contradiction between the named protocol and the component that the stamp states, without versions."""
    code = rules.claimed.stamp.get("code")
    stated = code.get("protocol") if isinstance(code, Mapping) else None
    if rules.protocol is None or not isinstance(stated, str):
        return
    named = component_version(type(rules.protocol))
    if _components(stated) != _components(named):
        yield f"it is of the protocol {rules.claimed.protocol} ({named}), but its stamp says {stated}"


def _components(version: str) -> list[str]:
    """Return the ids of a component and its bases without their versions; code of a package has no id."""
    return [one.rpartition(" ")[0] for one in version.split(" < ")]


def _of_refits(rules: Rules, again: Rebuilt) -> str:
    """Return a sentence on numbers from refits, which predictions cannot reproduce; empty if there are none."""
    if again.result.verdict.refitted:
        return f"{PERMUTED_LABELS} it is p = {again.fixed.p_adjusted:.2g}, {again.fixed.word}"
    stated = rules.claimed.refits
    seeds = stated is not None and stated.varies == TRAINING_SEEDS
    return REFITS if rules.refitted and not seeds else ""


def _invented_refits(rules: Rules, refits: RefitAnswers | None) -> Iterator[str]:
    """Yield reasons why answers are not those of refits: another number of them, or all the same."""
    if refits is None or refits.varies == NO_TRAINING:
        return
    wanted = rules.refits_made
    if wanted is not None and refits.count not in (wanted, rules.claimed.options.get("refits_made")):
        yield f"it has {refits.count} refits, but its options give {wanted}"
    if not refits.vary:
        yield f"the answers of its {refits.count} refits are all the same, so they are not of different {refits.varies}"


def _differences(rules: Rules, rebuilt: Rebuilt) -> Iterator[str]:
    """Yield statements of a result that its predictions contradict."""
    again, clean = rebuilt.result, rebuilt.clean
    yield from differences(
        rules.claimed.to_json(),
        _with_stated_options(rules, again.to_json()),
        on_trust=lambda path: _on_trust(rules, path),
        compared=lambda path: _compared(rules.claimed, path),
        clean=clean,
    )
    if not rules.claimed.outdated:
        yield from missing_sentences(rules.claimed.warnings, again.warnings, clean)


def _differing_facts(rules: Rules) -> Iterator[str]:
    """Yield contradictions with suite, protocol or registry, which need no predictions."""
    facts = _with_stated_options(rules, rules.facts())
    known = leaves(facts)
    yield from differences(
        rules.claimed.to_json(),
        facts,
        on_trust=lambda path: _on_trust(rules, path),
        compared=lambda path: path in known and _compared(rules.claimed, path),
    )


def _with_stated_options(rules: Rules, record: dict[str, Any]) -> dict[str, Any]:
    """Remove options from the JSON if the submitted result states none, as results of `cardiobench.score` do."""
    return record if rules.claimed.options else {**record, "options": {}}


def _on_trust(rules: Rules, path: Leaf) -> str:
    """Return why a leaf is taken on trust; empty if it is compared."""
    if path == ("seen_in_pretraining",):
        return "" if rules.card else DECLARED
    return OF_MODEL if path[0] == "warnings" else trusted(path, rules.options)


def _compared(claimed: ScoreResult, path: Leaf) -> bool:
    """Return whether a leaf can be compared; under older rules, only values are."""
    return not claimed.outdated or path[0] in SHARED or (path[0] in ("overall", "per_class") and path[-1] in VALUES)
