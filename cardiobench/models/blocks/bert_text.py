"""BERT as a text tower: tokenizer from a vocabulary next to the weights or from the Hub, and weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch

from cardiobench.core.errors import BadModel
from cardiobench.models.files import ModelFiles, given_files, resolve_model_files
from cardiobench.models.processors import check_texts, check_tokenizer_file
from cardiobench.models.safe_folder import TOKENIZER_RULES, safe_folder
from cardiobench.models.weights import load_exactly

VOCABULARY = "vocab.txt"
POSITIONS = ".embeddings.position_ids"  # Position numbers 0, 1, 2, ..., stored by older versions of transformers.

Network = TypeVar("Network", bound=torch.nn.Module)
Tokens = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class TextTokens:
    """A tokenizer as a function of texts; padding is masked, so the padded length does not matter.

    Attributes:
        tokenizer: Tokenizer of transformers.
        length: Maximum number of tokens; longer texts are truncated.
    """

    tokenizer: Any
    length: int

    def __call__(self, texts: Sequence[str]) -> Tokens:
        """Tokenize texts to token ids and attention mask, each (N, L), L at most `length`."""
        check_texts(self.tokenizer, texts)
        encoded = self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=self.length, return_tensors="pt"
        )
        return encoded["input_ids"], encoded["attention_mask"]


def read_tokenizer(
    source: ModelFiles, what: str, hub: str, *, size: int, length: int, **settings: Any
) -> tuple[TextTokens, dict[str, str]]:
    """Read a BERT tokenizer that is not part of a release, with a fact about it for the embedding key.

    Args:
        source: Files of the model; a `vocab.txt` among them or next to a single file takes precedence.
        what: Name of the model for messages.
        hub: Repository on the Hub whose cached tokenizer is used otherwise.
        size: Vocabulary size of the text tower.
        length: Maximum number of tokens of a text.
        settings: Settings of `BertTokenizer`, such as `do_lower_case`.

    Raises:
        BadModel: There is no tokenizer, or its vocabulary has an unexpected size.
    """
    from transformers import BertTokenizer

    around = replace(given_files(what, source.folder), used=source.used) if source.single else source
    if around.find((VOCABULARY,)) is not None:
        [vocabulary] = around.weights((VOCABULARY,))
        files, origin = given_files(what, vocabulary.parent), VOCABULARY
    else:
        try:
            files = resolve_model_files(hub)
        except BadModel as error:
            raise BadModel(
                f"{what}: prompts need the tokenizer of {hub}, which is not in the release. Put its {VOCABULARY} beside "
                f"the weights. ({error})"
            ) from error
        origin = f"{hub} at {files.commit}"
    with safe_folder(files, TOKENIZER_RULES) as folder:
        try:
            check_tokenizer_file(folder)
        except ValueError as error:
            raise BadModel(
                f"{what}: the tokenizer from {origin} cannot be used: {error}. Take it from {hub}."
            ) from error
        tokenizer = BertTokenizer.from_pretrained(folder, local_files_only=True, **settings)
    if len(tokenizer) != size:
        raise BadModel(
            f"{what}: the tokenizer from {origin} has {len(tokenizer)} words, but the text encoder has {size}. "
            f"Take {VOCABULARY} from {hub}."
        )
    return TextTokens(tokenizer, length), {"tokenizer": f"{type(tokenizer).__name__} from {origin}"}


def loaded_text(build: Callable[[], Network], state: Mapping[str, torch.Tensor], what: str) -> Network:
    """Build a text tower of transformers' BERT with exactly the given weights.

    Raises:
        BadModel: Parameters are missing or unexpected, or shapes differ.
    """
    # Not on the meta device, because BERT of transformers has a buffer of positions that no checkpoint contains.
    with torch.random.fork_rng(devices=[]):
        network = build()
    load_exactly(network, {name: one for name, one in state.items() if not name.endswith(POSITIONS)}, what)
    return network
