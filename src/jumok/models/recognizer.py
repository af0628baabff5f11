"""Reading the word in a picture: an encoder that looks, a decoder that writes; each decoder learns and reads in its own
way, behind one interface.

    losses(pictures, characters) -> −log p(characters | picture), row by row
    read(pictures)               -> characters, and how sure the model is of each
    said_as(seen, rows, words)   -> how likely words are that somebody else has thought of

CTC (Graves et al. 2006) is the decoder that is here: every column of the picture says a character or nothing (blank),
all for themselves, and the loss sums over all ways to say the word.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from jumok.layers.characters import CharacterHead
from jumok.layers.ctc import BLANK, NEVER, best_path, ctc_loss, said_as
from jumok.layers.dropout import Dropout
from jumok.models.recognizer_encoders import build_encoder
from jumok.recipe.recognition import RecognizerSection
from jumok.text.charset import Charset
from jumok.text.special import END, PAD, START, UNKNOWN

TOGETHER = 64  # pictures that a CPU looks at together: of more, what lies between two layers leaves its cache


@dataclass(frozen=True)
class Reading:
    """What stands in pictures, a row for each."""

    ids: Tensor  # (B, L) characters, PAD after the end; neither <sos> nor <eos>
    lengths: Tensor  # (B,)
    log_probs: Tensor  # (B, L) log p of each character; 0 after the end
    ending: Tensor  # (B,) log p of ending there (CTC: of all blanks on the best path)
    drafted: Tensor | None = None  # (B,) of a model with two ways to read: which rows the quicker one has read

    @property
    def total(self) -> Tensor:
        """log p of all of it, (B,)."""
        return self.log_probs.sum(dim=1) + self.ending


def reading_of(ids_BT: Tensor, log_prob_BT: Tensor) -> Reading:
    """What stands before the first <eos>."""
    lengths_B = first_end(ids_BT)
    behind_BL = torch.arange(ids_BT.size(1) - 1, device=ids_BT.device) >= lengths_B[:, None]
    ending_B = log_prob_BT.gather(1, lengths_B[:, None])[:, 0]
    return Reading(
        ids_BT[:, :-1].masked_fill(behind_BL, PAD), lengths_B, log_prob_BT[:, :-1].masked_fill(behind_BL, 0.0), ending_B
    )


def first_end(ids_BT: Tensor) -> Tensor:
    """Where the first <eos> stands, (B,). There is one."""
    return (ids_BT == END).int().argmax(dim=1)


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

    @torch.no_grad()
    def read(self, images_BCHW: Tensor, fast: bool = False, sure: float = 1.0) -> Reading:
        """The likeliest characters, one by one. `fast`: by the quicker of two ways, where a model has two; `sure` below
        1: by the quicker one where that is so sure of the word."""
        return self.written(self.look(images_BCHW), fast, sure)

    def look(self, images_BCHW: Tensor) -> Tensor:
        """What is seen of the pictures, (B, S, D)."""
        parts = torch.split(images_BCHW, TOGETHER if images_BCHW.device.type == "cpu" else len(images_BCHW) or 1)
        return torch.cat([self.encoder(part_BCHW) for part_BCHW in parts])

    def written(self, seen_BSD: Tensor, fast: bool = False, sure: float = 1.0) -> Reading:
        """`read`, of what was seen."""
        raise NotImplementedError

    def said_as(self, seen_BSD: Tensor, rows_N: Tensor, ids_NT: Tensor, lengths_N: Tensor, fast: bool) -> Reading:
        """Texts, each with the picture that it is for: how likely it is there, by the quicker of two ways or (not
        `fast`) by the other. `ids` are as those of `losses`, for texts that may be shorter: (N, n + 1) or more."""
        raise NotImplementedError


class CtcHead(nn.Module):
    """A character or a blank in each column."""

    def __init__(self, section: RecognizerSection, charset: Charset) -> None:
        super().__init__()
        self.dropout = Dropout(section.dropout)
        self.head = CharacterHead(section.width, charset.size, charset.first_syllable, charset.jamo)

    def losses(self, columns_BCD: Tensor, ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """−log p of each row's characters, (B,); 0 for a row that so many columns cannot say."""
        ids_BS, asked_BS = self._asked(ids_BT)
        log_probs_BCS = self.head.among(self.dropout(columns_BCD), asked_BS)
        return ctc_loss(log_probs_BCS[..., 1:], log_probs_BCS[..., 0], ids_BS, lengths_B)

    def _asked(self, ids_BT: Tensor) -> tuple[Tensor, Tensor]:
        """A row's characters (B, S), and nothing and each of them: what columns are asked for, (B, 1 + S)."""
        ids_BS = ids_BT[:, :-1]  # the last place is for <eos> alone
        return ids_BS, torch.cat([torch.full_like(ids_BT[:, :1], BLANK), ids_BS], dim=1)

    def said_as(self, columns_BCD: Tensor, rows_N: Tensor, ids_NT: Tensor, lengths_N: Tensor) -> Reading:
        """Texts: each character in the column that has most to do with it, and as its end whatever makes of these the
        whole text's probability, which is the sum over all ways to say it."""
        ids_NS, asked_NS = self._asked(ids_NT)
        log_probs_NCS = self.head.among_rows(self.dropout(columns_BCD), rows_N, asked_NS)
        total_N, of_each_NS = said_as(log_probs_NCS[..., 1:], log_probs_NCS[..., 0], ids_NS, lengths_N)
        total_N = torch.where(total_N > NEVER / 2, total_N, float("-inf"))
        behind_NS = torch.arange(ids_NS.size(1), device=ids_NS.device) >= lengths_N[:, None]
        return Reading(ids_NS.masked_fill(behind_NS, BLANK), lengths_N, of_each_NS, total_N - of_each_NS.sum(dim=1))

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
    def written(self, seen_BSD: Tensor, fast: bool = False, sure: float = 1.0) -> Reading:
        return self.ctc.read(self.encoder.columns(seen_BSD))

    @torch.no_grad()
    def said_as(self, seen_BSD: Tensor, rows_N: Tensor, ids_NT: Tensor, lengths_N: Tensor, fast: bool) -> Reading:
        return self.ctc.said_as(self.encoder.columns(seen_BSD), rows_N, ids_NT, lengths_N)


def build_recognizer(section: RecognizerSection, charset: Charset) -> Recognizer:
    if section.decoder == "ctc":
        return CtcRecognizer(section, charset)
    if section.decoder == "permuted":
        from jumok.models.permuted import PermutedRecognizer

        return PermutedRecognizer(section, charset)
    from jumok.models.recognizer_decoders import WritingRecognizer

    return WritingRecognizer(section, charset)
