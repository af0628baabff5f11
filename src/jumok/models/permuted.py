"""Permuted autoregressive reading (PARSeq, Bautista and Atienza 2022): one decoder learns to write the characters of a
word in any order, so it can read left to right, and look again at each character with all others known.

    log p(y | x) = Σ_t log p(y_z(t) | y_z(1) … y_z(t−1), x)        for any order z;  loss: the mean over some orders

Two streams (Yang et al. 2019): a query for each position, which knows where it stands and not what stands there, and
the characters with their positions, which queries look at. Who may look at whom is all that an order is: the query of
position i sees character j if z has j before i, and <sos> always. A character is the same in every layer, whoever looks
at it; so no order can let it tell what it saw, and one projection of it serves all orders and all steps of reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from jumok.errors import BadInput
from jumok.layers.block import AddNorm, BlockSection, FeedForward, build_norm
from jumok.layers.characters import CharacterEmbedding, CharacterHead
from jumok.layers.dropout import Dropout
from jumok.layers.linear import for_products
from jumok.layers.loss import wide
from jumok.layers.multihead import KeyValue, Look, MultiHeadAttention
from jumok.layers.position import Sinusoidal
from jumok.layers.tap import Tap
from jumok.models.recognizer import CtcHead, Reading, Recognizer, first_end, reading_of
from jumok.recipe.recognition import RecognizerSection
from jumok.text.charset import Charset
from jumok.text.special import END, PAD, START, UNKNOWN

NO_CHARACTER = (PAD, UNKNOWN, START)
FEWER = 0.75  # words still being written, as a share of the rows that are computed: with less, others are left out
ROOMS = (8, 16, 32, 64)  # places of a word that is looked at again, where its own length leaves the rest empty


class QueryBlock(nn.Module):
    """What a query does in a layer: it looks at characters, at the picture, and thinks."""

    def __init__(self, section: BlockSection, name: str) -> None:
        super().__init__()

        def attention(kind: str) -> MultiHeadAttention:
            return MultiHeadAttention(
                section.width, section.heads, section.heads, section.attention_dropout, kind, f"{name}.{kind}"
            )

        self.characters, self.characters_norm = attention("causal"), AddNorm(section)
        self.content_norm = build_norm(section)
        self.cross, self.cross_norm = attention("cross"), AddNorm(section)
        self.feed_forward, self.feed_forward_norm = FeedForward(section), AddNorm(section)

    def content(self, characters_BSD: Tensor) -> KeyValue:
        """Keys and values of the characters."""
        return self.characters.project(for_products(self.content_norm(characters_BSD)))

    def forward(self, query_BQD: Tensor, content: KeyValue, picture: KeyValue, mask: Tensor | None) -> Tensor:
        query_BQD = self.characters_norm(query_BQD, lambda x: self.characters(x, Look(mask), content))
        query_BQD = self.cross_norm(query_BQD, lambda x: self.cross(x, Look(), picture))
        return self.feed_forward_norm(query_BQD, self.feed_forward)


class PermutedRecognizer(Recognizer):
    def __init__(self, section: RecognizerSection, charset: Charset) -> None:
        super().__init__(section, charset)
        self.replays = section.encoder == "vit"
        self.places = section.max_length + 1  # one more for <eos>
        characters = charset.size, charset.first_syllable, charset.jamo
        self.embedding = CharacterEmbedding(characters[0], section.width, *characters[1:])
        # learned, but they begin as sines: as large as the characters they are added to, and neighbours alike
        waves = Sinusoidal(section.width + section.width % 2)
        waves.reach(self.places)
        self.positions = nn.Parameter(waves.rows[: self.places, : section.width].clone())
        blocks = section.vit.model_copy(update={"heads": section.decoder_heads})
        self.blocks = nn.ModuleList(QueryBlock(blocks, f"decoder.{number}") for number in range(section.decoder_layers))
        self.norm = build_norm(blocks)
        self.dropout = Dropout(section.dropout)
        self.head = CharacterHead(section.width, *characters)
        self.ctc = CtcHead(section, charset) if section.ctc else None

    # ------------------------------------------------------------ the parts

    def pictures(self, hidden_BSD: Tensor) -> list[KeyValue]:
        """Keys and values of what is seen, for each layer: once, however many queries will look."""
        seen = for_products(hidden_BSD)
        return [block.cross.project(seen) for block in self._blocks]

    def content(self, ids_BS: Tensor, first: int = 0) -> list[KeyValue]:
        """Keys and values of characters for each layer. `ids` begin with <sos>, which stands before all positions; or
        they are those of positions from `first` − 1 on."""
        embedded_BSD = self.embedding(ids_BS)
        end = first + ids_BS.size(1) - 1
        if first:
            embedded_BSD = embedded_BSD + self.positions[first - 1 : end]
        elif end:
            embedded_BSD = torch.cat([embedded_BSD[:, :1], embedded_BSD[:, 1:] + self.positions[:end]], dim=1)
        embedded_BSD = self.dropout(embedded_BSD)
        return [block.content(embedded_BSD) for block in self._blocks]

    def decoded(
        self, query_BQD: Tensor, content: Sequence[KeyValue], pictures: Sequence[KeyValue], mask: Tensor | None
    ) -> Tensor:
        """What the queries know in the end, (B, Q, D); `mask` (B, Q, S) where they may look at characters."""
        query_BQD = self.dropout(query_BQD)
        for block, characters, picture in zip(self._blocks, content, pictures, strict=True):
            query_BQD = block(query_BQD, characters, picture, mask)
        return self.norm(query_BQD)

    def queries(self, rows: int, first: int = 0, end: int | None = None) -> Tensor:
        """Queries of positions, (B, Q, D)."""
        return self.positions[first:end].expand(rows, -1, -1)

    @property
    def _blocks(self) -> list[QueryBlock]:
        return [block for block in self.blocks if isinstance(block, QueryBlock)]

    # ------------------------------------------------------------ learning

    def losses(self, images_BCHW: Tensor, ids_BT: Tensor, lengths_B: Tensor) -> dict[str, Tensor]:
        """The mean over orders. Where nothing is learned it is left to right alone: −log p of what reading writes."""
        hidden_BSD = self.encoder(images_BCHW)
        orders_BKT = self.orders(lengths_B) if self.training else self.left_to_right(lengths_B)[:, None]
        entropy_B = -self.log_probs(hidden_BSD, ids_BT, lengths_B, orders_BKT).sum(dim=2).mean(dim=1)
        if self.ctc is None:
            return {"loss": entropy_B}
        ctc_B = self.ctc.losses(self.encoder.columns(hidden_BSD), ids_BT, lengths_B)
        return {"loss": entropy_B + self.section.ctc * ctc_B, "characters": entropy_B, "ctc": ctc_B}

    def log_probs(self, hidden_BSD: Tensor, ids_BT: Tensor, lengths_B: Tensor, orders_BKT: Tensor) -> Tensor:
        """log p of each character and of <eos> in each of K orders, (B, K, T); 0 for padding. An order has a number for
        each position: the smaller, the earlier."""
        return self._in_orders(self.pictures(hidden_BSD), ids_BT, lengths_B, orders_BKT)

    def _in_orders(self, pictures: Sequence[KeyValue], ids_BT: Tensor, lengths_B: Tensor, orders_BKT: Tensor) -> Tensor:
        rows, orders, places = orders_BKT.shape
        start_B1 = torch.full_like(ids_BT[:, :1], START)
        content = self.content(torch.cat([start_B1, ids_BT[:, :-1]], dim=1))
        mask_BQS = earlier(orders_BKT).flatten(1, 2)
        queries_BQD = self.queries(rows, 0, places).repeat(1, orders, 1)
        hidden_BQD = self.decoded(queries_BQD, content, pictures, mask_BQS)
        found_BKT = self.head.of(hidden_BQD, ids_BT.repeat(1, orders)).view(rows, orders, places)
        real_BT = torch.arange(places, device=ids_BT.device) <= lengths_B[:, None]
        return found_BKT * real_BT[:, None]

    def left_to_right(self, lengths_B: Tensor) -> Tensor:
        """(B, T)"""
        places_T = torch.arange(self.places, device=lengths_B.device, dtype=torch.float32)
        return self._ended(places_T.expand(len(lengths_B), -1), lengths_B)

    def orders(self, lengths_B: Tensor) -> Tensor:
        """(B, K, T): left to right, its mirror, random ones and their mirrors; <eos> after all characters."""
        rows, half = len(lengths_B), -(-self.section.permutations // 2)
        drawn_BHT = torch.rand(rows, half, self.places, device=lengths_B.device)
        drawn_BHT[:, 0] = torch.arange(self.places, device=lengths_B.device)
        both_BKT = torch.stack([drawn_BHT, -drawn_BHT], dim=2).flatten(1, 2)[:, : self.section.permutations]
        return self._ended(both_BKT, lengths_B[:, None])

    def _ended(self, orders: Tensor, lengths: Tensor) -> Tensor:
        """<eos> comes after the characters, and padding after <eos>, which nobody real then sees."""
        places_T = torch.arange(self.places, device=lengths.device)
        behind = places_T - lengths[..., None]  # 0: <eos>
        return torch.where(behind < 0, orders, (self.places + behind).to(orders.dtype))

    # ------------------------------------------------------------ reading

    @torch.no_grad()
    def written(self, seen_BSD: Tensor, fast: bool = False, sure: float = 1.0) -> Reading:
        """Left to right, then all again with the others known; `fast`: what the columns say (CTC). With `sure` below 1
        only where the columns' reading is not that probable: which words that are, no other word has a say in."""
        if not fast and sure >= 1:
            return self._read_in_full(seen_BSD)
        drafted = self._columns().read(self.encoder.columns(seen_BSD))
        if fast:
            return replace(drafted, drafted=torch.ones_like(drafted.lengths, dtype=torch.bool))
        longest = self.section.max_length  # there are as many columns, or more
        unsure_B = drafted.total.exp() < sure
        rows = (unsure_B | (drafted.lengths > longest)).nonzero()[:, 0]
        ids_BL, log_probs_BL = drafted.ids[:, :longest], drafted.log_probs[:, :longest]
        lengths_B, ending_B = drafted.lengths, drafted.ending
        if len(rows):
            full = self._read_in_full(seen_BSD[rows])
            ids_BL[rows], log_probs_BL[rows] = full.ids, full.log_probs.to(log_probs_BL.dtype)
            lengths_B[rows], ending_B[rows] = full.lengths, full.ending.to(ending_B.dtype)
        return Reading(ids_BL, lengths_B, log_probs_BL, ending_B, torch.ones_like(unsure_B).index_fill(0, rows, False))

    @torch.no_grad()
    def said_as(self, seen_BSD: Tensor, rows_N: Tensor, ids_NT: Tensor, lengths_N: Tensor, fast: bool) -> Reading:
        """By the decoder, left to right; `fast`: by the columns."""
        if fast:
            return self._columns().said_as(self.encoder.columns(seen_BSD), rows_N, ids_NT, lengths_N)
        orders_N1T = self.left_to_right(lengths_N)[:, None, : ids_NT.size(1)]
        pictures = _of_rows(self.pictures(seen_BSD), rows_N)
        return reading_of(ids_NT, self._in_orders(pictures, ids_NT, lengths_N, orders_N1T)[:, 0])

    def _columns(self) -> CtcHead:
        if self.ctc is None:
            raise BadInput("this model has no fast way to read: it was trained with model.ctc: 0")
        return self.ctc

    def _read_in_full(self, hidden_BSD: Tensor) -> Reading:
        pictures = self.pictures(hidden_BSD)
        ids_BT, log_prob_BT = self._written(pictures)
        refine = self._refined_by_length if self._leaves_out else self._refined
        for _ in range(self.section.refinements):
            ids_BT, log_prob_BT = refine(ids_BT, pictures)
        return reading_of(ids_BT, log_prob_BT)

    @property
    def _leaves_out(self) -> bool:
        """Whether rows and places that a word has no use for are left out of what is computed: on a CPU, where the
        longest of many words is three times as long as most. On a GPU that would be waiting, for nothing; and who
        watches the attention is shown all rows at every call."""
        device = self.positions.device.type
        return device == "cpu" and not any(part.watched for part in self.blocks.modules() if isinstance(part, Tap))

    def _written(self, pictures: Sequence[KeyValue]) -> tuple[Tensor, Tensor]:
        """Left to right: the choice at each place and its log p, (B, T) both; the last place has <eos>, and what stands
        behind a row's first <eos> means nothing."""
        rows, device, exact = len(pictures[0].key), pictures[0].key.device, wide(pictures[0].key.dtype)
        ids_BT = torch.full((rows, self.places), END, device=device)
        log_prob_BT = torch.zeros(rows, self.places, dtype=exact, device=device)
        room: list[KeyValue] = []
        row_B, leaves_out = torch.arange(rows, device=device), self._leaves_out
        ended_B = torch.zeros(rows, dtype=torch.bool, device=device)
        written_B1 = torch.full((rows, 1), START, device=device)
        for place in range(self.places):
            new = self.content(written_B1, place)
            if not room:
                room = [KeyValue(*(_room(part, self.places) for part in pair)) for pair in new]
            for (keys, values), (key, value) in zip(room, new, strict=True):
                keys[:, place : place + 1], values[:, place : place + 1] = key, value
            content = [KeyValue(keys[:, : place + 1], values[:, : place + 1]) for keys, values in room]
            hidden_B1D = self.decoded(self.queries(len(row_B), place, place + 1), content, pictures, None)
            log_prob_B1, written_B1 = self._choice(hidden_B1D, place)
            ids_BT[row_B, place], log_prob_BT[row_B, place] = written_B1[:, 0], log_prob_B1[:, 0]
            ended_B = ended_B | (written_B1[:, 0] == END)
            if bool(ended_B.all()):
                break
            if leaves_out and int((~ended_B).sum()) <= FEWER * len(row_B):
                going = (~ended_B).nonzero()[:, 0]
                pictures, room = _of_rows(pictures, going), _of_rows(room, going)
                row_B, written_B1, ended_B = row_B[going], written_B1[going], ended_B[going]
        return ids_BT, log_prob_BT

    def _refined_by_length(self, ids_BT: Tensor, pictures: Sequence[KeyValue]) -> tuple[Tensor, Tensor]:
        """The same as `_refined`, with no more places than a word has use for: by its own length, so what it is read as
        still does not depend on what is read beside it. A word that became longer than its room is done again."""
        found_BT, log_prob_BT = ids_BT.clone(), torch.zeros(ids_BT.shape, dtype=wide(pictures[0].key.dtype))
        lengths_B = first_end(ids_BT)
        left_B = torch.ones(len(ids_BT), dtype=torch.bool)
        for room in (*(room for room in ROOMS if room < self.places), self.places):
            rows = (left_B & (lengths_B < room)).nonzero()[:, 0]
            if not len(rows):
                continue
            refined_RT, log_prob_RT = self._refined(ids_BT[rows, :room], _of_rows(pictures, rows))
            ended_R = (refined_RT == END).any(dim=1)
            rows, refined_RT, log_prob_RT = rows[ended_R], refined_RT[ended_R], log_prob_RT[ended_R]
            found_BT[rows, :room], log_prob_BT[rows, :room] = refined_RT, log_prob_RT
            left_B[rows] = False
        return found_BT, log_prob_BT

    def _refined(self, ids_BT: Tensor, pictures: Sequence[KeyValue]) -> tuple[Tensor, Tensor]:
        """Every place again, where it sees all characters of the reading but its own. All places, not those in use
        alone: what a picture is read as does not depend on the longest word beside it."""
        rows, places = ids_BT.shape
        content = self.content(torch.cat([torch.full_like(ids_BT[:, :1], START), ids_BT[:, :-1]], dim=1))
        lengths_B = first_end(ids_BT)
        place_T = torch.arange(places, device=ids_BT.device)
        others_TT = place_T[:, None] != place_T
        mask_BTT = others_TT & (place_T < lengths_B[:, None])[:, None]
        hidden_BTD = self.decoded(self.queries(rows, 0, places), content, pictures, with_start(mask_BTT))
        log_prob_BT, refined_BT = self._choice(hidden_BTD, 0)
        return refined_BT, log_prob_BT

    def _choice(self, hidden_BQD: Tensor, first: int) -> tuple[Tensor, Tensor]:
        """log p and id of the likeliest at positions from `first` on; the last of all positions is for <eos>."""
        log_prob_BQ, ids_BQ = self.head.best(hidden_BQD, without=NO_CHARACTER)
        if first + hidden_BQD.size(1) == self.places:
            ids_BQ[:, -1] = END
            log_prob_BQ[:, -1:] = self.head.of(hidden_BQD[:, -1:], ids_BQ[:, -1:])
        return log_prob_BQ, ids_BQ


def earlier(orders: Tensor) -> Tensor:
    """(…, T, S): which of <sos> and the characters before the last place each position may look at."""
    return with_start(orders[..., None, :] < orders[..., None])


def with_start(mask: Tensor) -> Tensor:
    """A mask over positions (…, T, T) as one over <sos> and the characters of all positions but the last."""
    return torch.cat([torch.ones_like(mask[..., :1]), mask[..., :-1]], dim=-1)


def _of_rows(layers: Sequence[KeyValue], rows: Tensor) -> list[KeyValue]:
    return [KeyValue(layer.key[rows], layer.value[rows]) for layer in layers]


def _room(part_B1HD: Tensor, places: int) -> Tensor:
    """Room for keys or values of all places."""
    return part_B1HD.new_empty(len(part_B1HD), places, *part_B1HD.shape[2:])
