"""Reading the word in a picture: an encoder that looks, a decoder that writes; each decoder learns and reads in its own
way, behind one interface.

    losses(pictures, characters) -> −log p(characters | picture), row by row
    read(pictures)               -> characters, and how sure the model is of each

CTC (Graves et al. 2006) is the decoder that is here: every column of the picture says a character or nothing (blank),
all for themselves, and the loss sums over all ways to say the word.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from jumok.layers.characters import CharacterHead
from jumok.layers.ctc import BLANK, best_path, ctc_loss
from jumok.layers.dropout import Dropout
from jumok.models.recognizer_encoders import build_encoder
from jumok.recipe.recognition import RecognizerSection
from jumok.text.charset import Charset
from jumok.text.special import END, START, UNKNOWN

TOGETHER = 64  # pictures that a CPU looks at together: of more, what lies between two layers leaves its cache


@dataclass(frozen=True)
class Reading:
    """What stands in pictures, a row for each."""

    ids: Tensor  # (B, L) characters, PAD after the end; neither <sos> nor <eos>
    lengths: Tensor  # (B,)
    log_probs: Tensor  # (B, L) log p of each character; 0 after the end
    ending: Tensor  # (B,) log p of ending there (CTC: of all blanks on the best path)


class Recognizer(nn.Module):
    """`ids` (B, T) are `y_1 … y_n <eos> <pad> …`, T = max_length + 1 whatever is read; `lengths` are n, 0 for a picture
    without text."""

    replays = False  # whether its training may be recorded as a CUDA graph: nothing in it waits for the GPU

    def __init__(self, section: RecognizerSection, charset: Charset) -> None:
        super().__init__()
        self.section, self.charset = section, charset
        self.encoder = build_encoder(section)

    def losses(self, images_BCHW: Tensor, ids_BT: Tensor, lengths_B: Tensor) -> dict[str, Tensor]:
        """(B,) each: "loss", what is minimised, a sum over the row's characters; and its parts, for the log."""
        raise NotImplementedError

    def read(self, images_BCHW: Tensor, fast: bool = False, sure: float = 1.0) -> Reading:
        """The likeliest characters, one by one. `fast`: by the quicker of two ways, where a model has two; `sure` below
        1: by the quicker one where that is so sure of the word."""
        raise NotImplementedError


class CtcHead(nn.Module):
    """A character or a blank in each column."""

    def __init__(self, section: RecognizerSection, charset: Charset) -> None:
        super().__init__()
        self.dropout = Dropout(section.dropout)
        self.head = CharacterHead(section.width, charset.size, charset.first_syllable, charset.jamo)

    def losses(self, columns_BCD: Tensor, ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """−log p of each row's characters, (B,); 0 for a row that so many columns cannot say."""
        longest = ids_BT.size(1) - 1  # the last place is for <eos> alone
        asked_BS = torch.cat([torch.full_like(ids_BT[:, :1], BLANK), ids_BT[:, :longest]], dim=1)
        found_BCS = self.head.among(self.dropout(columns_BCD), asked_BS)
        return ctc_loss(found_BCS[..., 1:], found_BCS[..., 0], ids_BT[:, :longest], lengths_B)

    @torch.no_grad()
    def read(self, columns_BCD: Tensor) -> Reading:
        """The likeliest of every column, repetitions taken together and blanks taken out."""
        log_prob_BC, ids_BC = self.head.best(columns_BCD, without=(UNKNOWN, START, END))
        return Reading(*best_path(log_prob_BC, ids_BC))


class CtcRecognizer(Recognizer):
    """With the recurrent encoder this is the CRNN (Shi et al. 2015)."""

    def __init__(self, section: RecognizerSection, charset: Charset) -> None:
        super().__init__(section, charset)
        self.replays = section.encoder == "vit"
        self.ctc = CtcHead(section, charset)

    def losses(self, images_BCHW: Tensor, ids_BT: Tensor, lengths_B: Tensor) -> dict[str, Tensor]:
        columns_BCD = self.encoder.columns(self.encoder(images_BCHW))
        return {"loss": self.ctc.losses(columns_BCD, ids_BT, lengths_B)}

    @torch.no_grad()
    def read(self, images_BCHW: Tensor, fast: bool = False, sure: float = 1.0) -> Reading:
        return self.ctc.read(self.encoder.columns(self.encoder(images_BCHW)))


def build_recognizer(section: RecognizerSection, charset: Charset) -> Recognizer:
    if section.decoder == "ctc":
        return CtcRecognizer(section, charset)
    if section.decoder == "permuted":
        from jumok.models.permuted import PermutedRecognizer

        return PermutedRecognizer(section, charset)
    from jumok.models.recognizer_decoders import WritingRecognizer

    return WritingRecognizer(section, charset)
