"""Read dense labels from a raw folder written by a test."""

from cardiobench.data import catalog, open_dataset


def labels_of(name, raw):
    source = open_dataset(name.partition("/")[0], raw, allow_missing=True)
    return source, list(source.dense_labels(catalog.task(name)))


def expected_of(source, name):
    """Return the test units that are the denominator of coverage."""
    references = source.references(catalog.task(name))
    return set(references.loc[references["split"] == "test", "id"])
