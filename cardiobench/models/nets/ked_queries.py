"""ECGFM-KED's text encoder, and the decoder that asks the tokens of an ECG for labels."""

from typing import TYPE_CHECKING

import torch
from torch import nn

from cardiobench.models.nets.xresnet1d import WIDTH

if TYPE_CHECKING:
    from transformers import BertConfig

LAYERS, HEADS, FEEDFORWARD = 7, 4, 1024
HIDDEN, ANSWERS = 2048, 2


def bert_config() -> "BertConfig":
    """Return the configuration of `emilyalsentzer/Bio_ClinicalBERT`: BERT base with the words of the cased BERT."""
    from transformers import BertConfig

    return BertConfig(vocab_size=28996, layer_norm_eps=1e-12)


class KedText(nn.Module):
    """BERT and three layers; tensors `bert_model.*`, `mlp_embed.*` and a `logit_scale` that nothing uses."""

    def __init__(self) -> None:
        from transformers import BertModel

        super().__init__()
        self.logit_scale = nn.Parameter(torch.zeros(()))
        self.bert_model = BertModel(bert_config())
        width = self.bert_model.config.hidden_size
        self.mlp_embed = nn.Sequential(
            nn.Linear(width, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH)
        )

    def pooled(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Encode token ids and attention mask (N, L) as BERT's pooler output (N, 768)."""
        return self.bert_model(input_ids=ids, attention_mask=mask).pooler_output

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Map token ids and attention mask (N, L) to queries (N, 768), not of unit length."""
        return self.mlp_embed(self.pooled(ids, mask))


class KedDecoder(nn.Module):
    """Queries attend to each other and to the tokens of an ECG; one norm is shared by queries, tokens and the end.

    Queries are not independent: the answer to one depends on the others that are asked with it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.logit_scale = nn.Parameter(torch.zeros(()))
        self.decoder_norm = nn.LayerNorm(WIDTH)
        layer = nn.TransformerDecoderLayer(WIDTH, HEADS, FEEDFORWARD, batch_first=True, norm_first=True)
        self.decoder = nn.TransformerDecoder(layer, LAYERS, self.decoder_norm)
        self.mlp_head = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, ANSWERS))

    def forward(self, tokens: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        """Answer queries (C, 768) from the tokens of ECGs (B, T, 768) by the logits of no and yes (B, C, 2)."""
        asked = self.decoder_norm(queries).expand(len(tokens), -1, -1)
        return self.mlp_head(self.decoder(asked, self.decoder_norm(tokens)))
