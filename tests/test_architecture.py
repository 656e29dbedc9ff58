"""Test the architecture of the package: layers without cycles, one name per concept, printing in one place."""

import ast
import json
import re
from collections import defaultdict

from cardiobench.cli.commands import commands
from cardiobench.core.resources import PACKAGE
from cardiobench.metrics.load import load_metric, own_metrics
from cardiobench.protocols import list_protocols
from cardiobench.results.verdict import Verdict
from cardiobench.tasks.task import list_kinds
from tests.architecture import FILES, callers, circle, nodes, nodes_by_type, reached, syntax_tree, users_of_fields
from tests.features import stated


def test_imports_have_no_cycles():
    assert circle() == ""


def test_one_module_computes_cells():
    """The workers call what `compute_all` sends; everybody else asks `compute_all`, which asks `applies`."""
    assert callers("compute", "cardiobench.runner") == {"cardiobench.runner.compute", "cardiobench.runner.workers"}
    assert callers("check_encoder", "cardiobench.runner") == {"cardiobench.runner.cells.recordings"}
    checking = {name for name in FILES if name.startswith("cardiobench.runner") and "reason_given" in bound_names(name)}
    assert checking == {"cardiobench.runner.compute"}


def test_manifest_of_extensions_has_few_fields_with_one_user():
    users = users_of_fields()
    assert len(users) <= 12
    single = [name for name, extensions in users.items() if len(extensions) == 1]
    recorded = json.loads((PACKAGE.parent / "tests" / "golden" / "versions.json").read_text("utf-8"))["versions"]
    protocols = {name.partition(" ")[2] for name in recorded if name.startswith("protocol ")}
    assert len(single) <= 5 or protocols - {*list_protocols()}, "without deleted extensions, more fields have one user"


def test_protocols_and_scoring_do_not_import_what_they_do_not_use():
    """Protocols receive vectors, not files of a store; scoring asks the kind of a task, and knows no form of answer."""
    assert "cardiobench.embeddings.store" not in reached("cardiobench.protocols.probe")
    assert "cardiobench.tasks.frames" not in reached("cardiobench.scoring.score")


def test_class_name_occurs_once():
    places = defaultdict(list)
    for name in FILES:
        for node in syntax_tree(name).body:
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_only_the_command_line_and_the_console_write_to_the_screen():
    allowed = ("cardiobench.cli", "cardiobench.core.console")
    printed = [
        (name, node) for name, node in nodes(ast.Call) if isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    streams = [
        (name, node)
        for name, node in nodes(ast.Attribute)
        if node.attr in ("stdout", "stderr") and isinstance(node.value, ast.Name) and node.value.id == "sys"
    ]
    assert [f"{name}:{node.lineno}" for name, node in printed + streams if not name.startswith(allowed)] == []


BY_HAND = {
    "cardiobench.cli": "names of programs in the help",
    "cardiobench.hub.publish_models": "card of a model on the Hub, where no command runs",
    "cardiobench.leaderboard.submit": "page of a leaderboard, where no command runs",
    "cardiobench.runner.processes": "a launcher, which starts the processes of the user's own command",
}
"""Mapping from module or package to the reason why it writes commands as text; all others call `command`."""


def written_commands() -> list[str]:
    """Return the places that write a command line as text.

    Docstrings and the examples of a help text are left out; a name in backticks, such as `cardiobench list`, names a
    command and is not a line to run.
    """
    line = re.compile(rf"(?<![`\w])cardiobench ({'|'.join([*commands(), 'eval'])})\b|-m cardiobench\b")
    found = []
    for name in FILES:
        left_out = {
            id(inner)
            for node in ast.walk(syntax_tree(name))
            if (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            or (isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("EXAMPLES", "GENERATED"))
            for inner in ast.walk(node)
        }
        for node in nodes_by_type(name)[ast.Constant]:
            if isinstance(node.value, str) and id(node) not in left_out and line.search(node.value):
                found.append(f"{name}:{node.lineno}: {line.search(node.value)[0]}")
    return found


def test_commands_to_run_are_made_by_one_function():
    places = [place for place in written_commands() if not allowed(place.partition(":")[0], BY_HAND)]
    assert places == []
    assert {
        one for one in BY_HAND if not any(allowed(place.partition(":")[0], [one]) for place in written_commands())
    } == set()


NAMED = {
    "cardiobench.data": "metrics of tasks that several datasets have",
    "cardiobench.testing.protocol": "toy tasks",
    "cardiobench.report.plots": "figures of these studies",
    "cardiobench.extensions": "studies about that number, and tables of the papers",
    "cardiobench.leaderboard.verify": "a field of the scores of classes",
    "cardiobench.report.page.naming": "decision threshold behind the sensitivity",
    "cardiobench.scoring.metrics": "mean area of several labels, which protocols choose by",
    "cardiobench.stats.permuted_labels": "statistic of the test of two classes",
    "cardiobench.stats.information": "statistics of a kind of task",
    "cardiobench.stats.estimates": "areas of the classes of a kind of task",
    "cardiobench.stats.areas": "areas of the classes of a kind of task",
    "cardiobench.tasks": "formulas of a kind of task",
}
"""Mapping from module or package to the reason why it names numbers of metrics; all others use `Number`."""
WORDS = {"chance", "p_value", "bias"}
"""Keys of numbers that are also other words."""


def allowed(name: str, places) -> bool:
    """Tell whether a module is in one of the given modules and packages."""
    return any(name == place or name.startswith(f"{place}.") for place in places)


def named_numbers() -> dict[str, list[str]]:
    """Return a mapping from module to the places where it names numbers of metrics."""
    keys = {key for name in own_metrics() for key in load_metric(name).numbers} - WORDS
    found = defaultdict(list)
    for name, node in nodes(ast.Constant):
        if node.value in keys:
            found[name].append(f"{name}:{node.lineno} names {node.value}")
    return found


def test_metrics_are_named_only_where_allowed():
    found = named_numbers()
    assert [line for name, lines in found.items() if not allowed(name, NAMED) for line in lines] == []
    # Extensions can be removed as a whole, so only search modules of the core.
    core = [place for place in NAMED if place in FILES and not place.startswith("cardiobench.extensions")]
    assert [place for place in core if not any(allowed(name, [place]) for name in found)] == []


def test_only_one_package_checks_the_kind_of_a_task():
    """Comparisons, tables and `match` that name kinds skip kinds of other packages; only definitions of tasks may do so."""
    names, found = set(list_kinds()), []
    for name in FILES:
        if allowed(name, ["cardiobench.tasks"]):
            continue
        calls = [node for node in nodes_by_type(name)[ast.Call] if ast.unparse(node.func) == "Task"]
        defined = {argument for call in calls for argument in (*call.args, *(word.value for word in call.keywords))}
        constants = [node for node in nodes_by_type(name)[ast.Constant] if node.value in names]
        found += [f"{name}:{node.lineno} names {node.value}" for node in constants if node not in defined]
    assert found == []


FORMS_ASKED = ("cardiobench.tasks", "cardiobench.protocols", "cardiobench.extensions", "cardiobench.testing")
"""Packages that may compare forms of prediction: the kinds, and protocols, which state their forms."""
OF_ONE_FORM = {
    "cardiobench.data.audit": "counts the patients of each class where a unit has several",
    "cardiobench.data.prompts": "has templates of numbers, and sentences of classes",
    "cardiobench.data.rows": "reads the range of numbers",
    "cardiobench.data.declared.dataset_file": "asks for one column or several, and for the classes",
    "cardiobench.data.declared.labels": "reads cells as numbers or as classes",
    "cardiobench.cli.doctor": "says which numbers have no prompts",
}


def test_only_kinds_and_protocols_check_the_form_of_an_answer():
    """A kind with another form works everywhere else; see `tests/tasks/test_forms_of_answer.py`."""
    asked = {
        name
        for name, node in nodes(ast.Compare)
        if ast.unparse(node.left).endswith("rules.answer") and not isinstance(node.ops[0], ast.In | ast.NotIn)
    }
    assert {name for name in asked if not allowed(name, FORMS_ASKED)} == set(OF_ONE_FORM)


DECIDES = "cardiobench.scoring.pairs"
"""The module that decides which of several models are better."""
DIFFERENCES = {
    DECIDES: "decides",
    "cardiobench.scoring.compare": "differences of two models on one task",
    "cardiobench.scoring.ranking": "differences of means over tasks",
    "cardiobench.scoring.unpaired": "differences without predictions",
    "cardiobench.scoring.refits": "the variation of a difference over the training, added to its interval",
}
"""Modules that compute differences of models, by the formulas of `stats.paired`, for the one that decides."""
CONSTANTS = {"MIN_PER_LABEL", "comparable_labels"}
"""Names of `stats.paired` about the labels that are compared."""
ENDS = {"low", "high", "inner_low", "inner_high", "p_value", "p_adjusted"}
QUANTILES = {
    "quantile",
    "percentile",
    "nanquantile",
    "nanpercentile",
    "ppf",
    "isf",
    "percentile_interval",
    "confidence_interval",
}
"""Functions that give the ends of intervals."""
QUANTILES_OF = {
    "cardiobench.models.baselines.ecg_morphology": "features of a recording",
    "cardiobench.models.baselines.pixel_motion": "features of a recording",
    "cardiobench.protocols.grid_search.search": "steps of a grid",
    "cardiobench.protocols.zero_shot": "candidates for a threshold",
    "cardiobench.report.plots.groups": "errors of one result",
    "cardiobench.scoring.best_of": "the interval of one result",
    "cardiobench.scoring.unpaired": "standard errors of single results",
    "cardiobench.tasks.groups": "tenths of a measured quantity",
}
"""Modules outside `cardiobench.stats` that call such a function, with what it is of: not the difference of two models. A
feature states its own in `tests/extensions/<feature>/feature.toml`."""
OF_ONE_RESULT = {
    "cardiobench.data.media.checks": "limits of signs of a recording",
    "cardiobench.embeddings.split_audit": "ranges of vectors",
    "cardiobench.results.consistency": "whether the numbers of a file agree",
    "cardiobench.results.score_result": "gaps between groups of patients",
    "cardiobench.scoring.verdict": "a score and its floor",
    "cardiobench.stats.estimates": "an interval without width",
    "cardiobench.scoring.compare": "whether a p-value was corrected",
}
"""Modules that compare ends of intervals or p-values of one result, not of two models."""


def imported_names(name: str, module: str) -> set[str]:
    """Return the names that a module imports from another."""
    found = [node for node in nodes_by_type(name)[ast.ImportFrom] if node.module == module]
    return {alias.name for node in found for alias in node.names}


def test_only_one_module_decides_which_model_is_better():
    formulas = {name for name in FILES if imported_names(name, "cardiobench.stats.paired") - CONSTANTS}
    assert formulas == set(DIFFERENCES)
    assert {name for name in FILES if imported_names(name, "cardiobench.stats.holm")} == {
        DECIDES,
        "cardiobench.tasks.groups",
    }
    deciders = {name for name in FILES if imported_names(name, DECIDES) & {"decide_pairs", "place_models"}}
    assert deciders == {"cardiobench.scoring.ranking", "cardiobench.scoring.unpaired"}


def test_intervals_of_differences_are_computed_in_one_place():
    """Quantiles of resampled differences, or of ratios of two models, must not become a second interval."""
    found = {
        name
        for name, node in nodes(ast.Call)
        if isinstance(node.func, ast.Name | ast.Attribute)
        and (node.func.id if isinstance(node.func, ast.Name) else node.func.attr) in QUANTILES
        and not name.startswith("cardiobench.stats.")
    }
    of_features = {
        f"cardiobench.extensions.{feature}.{module}"
        for feature, modules in stated("quantiles_of").items()
        for module in modules
    }
    assert found == QUANTILES_OF.keys() | of_features


def test_ends_of_intervals_are_compared_only_where_models_are_decided():
    """Overlapping intervals, or p-values below a level, must not become a second rule about two models."""
    found = {
        name
        for name, node in nodes(ast.Compare)
        if any(isinstance(one, ast.Attribute) and one.attr in ENDS for one in (node.left, *node.comparators))
    }
    assert found == {DECIDES, *OF_ONE_RESULT}


def test_text_of_a_verdict_is_written_once():
    texts = {str(verdict) for verdict in Verdict} - {"too few to say"}  # Also an outcome of `compare`.
    found = [
        f"{name}:{node.lineno}"
        for name, node in nodes(ast.Constant)
        if node.value in texts and name != "cardiobench.results.verdict"
    ]
    pages = [path for path in PACKAGE.rglob("*") if path.suffix in (".js", ".html", ".css")]
    found += [path.name for path in pages if any(text in path.read_text("utf-8") for text in texts)]
    assert pages and found == []


def test_every_public_name_is_documented():
    missing = [
        f"{name}.{node.name}"
        for name in FILES
        for node in syntax_tree(name).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
        if not ast.get_docstring(node)
    ]
    assert missing == []


def bound_names(name: str) -> set[str]:
    """Return the names that a module binds anywhere, or states as texts for its `__getattr__`."""
    by_type = nodes_by_type(name)
    defined = [node.name for kind in (ast.FunctionDef, ast.ClassDef) for node in by_type[kind]]
    imported = [a.asname or a.name for kind in (ast.Import, ast.ImportFrom) for n in by_type[kind] for a in n.names]
    lazy = [node.value for node in by_type[ast.Constant]] if "__getattr__" in defined else []
    return {*defined, *imported, *lazy, *(node.id for node in by_type[ast.Name] if isinstance(node.ctx, ast.Store))}


def test_benchmarks_import_existing_names():
    """CI does not run the benchmarks, so nothing else notices that a name has moved."""
    missing = []
    for path in sorted((PACKAGE.parent / "benchmarks").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if not isinstance(node, ast.ImportFrom) or not str(node.module).startswith("cardiobench."):
                continue
            folder = re.match(r"cardiobench\.(extensions|models\.families)\.\w+", str(node.module))
            if folder and not (PACKAGE.parent / folder[0].replace(".", "/")).exists():
                continue
            known = bound_names(node.module) if node.module in FILES else set()
            names = [alias.name for alias in node.names if f"{node.module}.{alias.name}" not in FILES]
            missing += [f"{path.name}: {node.module}.{name}" for name in names if name not in known]
    assert missing == []
