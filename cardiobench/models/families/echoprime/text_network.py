"""Report encoder of EchoPrime: BERT with a projection of its first token to the video space."""

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from transformers import BertConfig

WIDTH = 512


def bert_config() -> "BertConfig":
    """Return the configuration of `microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract`: BERT base with its usual sizes."""
    from transformers import BertConfig

    return BertConfig(vocab_size=30522, layer_norm_eps=1e-12)


class EchoPrimeText(nn.Module):
    """BERT for masked words and a linear projection; tensors `backbone.*` and `text_projection.*`.

    Checkpoints of older versions of transformers also contain `backbone.bert.embeddings.position_ids`, a range of
    numbers that must be removed before loading. Source: Vukadinovic et al., EchoPrime, arXiv 2410.09704.
    """

    def __init__(self):
        from transformers import BertForMaskedLM

        super().__init__()
        self.backbone = BertForMaskedLM(bert_config())
        self.text_projection = nn.Linear(self.backbone.config.hidden_size, WIDTH)

    def hidden(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Encode token ids and attention mask (N, L) as the last hidden layer (N, L, 768)."""
        return self.backbone.bert(input_ids=ids, attention_mask=mask).last_hidden_state

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Map token ids and attention mask (N, L), L <= 512, to report vectors (N, 512), not normalised."""
        return self.text_projection(self.hidden(ids, mask)[:, 0])
