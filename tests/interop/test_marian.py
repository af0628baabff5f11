"""Marian models as Hugging Face keeps them: the same numbers and translations here; what does not fit is named."""

from __future__ import annotations

import importlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from marian_models import sentence, sentencepiece_file, write_marian
from safetensors.torch import load_file, save_file
from seeded import seed  # noqa: F401

import jumok
from jumok.data.batch import source_batch
from jumok.errors import BadInput, Failure
from jumok.interop.marian import positions, read_marian
from jumok.interop.marian_check import every_layer, loaded, numbers_of, same_translations
from jumok.interop.run_folder import import_huggingface
from jumok.interop.verifying import verify_huggingface
from jumok.search import SearchOptions, generate
from jumok.text.special import END, PAD, START
from jumok.training.run import RunFolder

transformers = pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")
pytestmark = [pytest.mark.usefixtures("seed"), pytest.mark.filterwarnings("ignore:Recommended")]
LIMIT = 40


@pytest.fixture
def dice(seed: int) -> random.Random:  # noqa: F811
    return random.Random(seed)


def imported(tmp_path: Path, dice: random.Random, **changes: Any) -> tuple[Any, RunFolder]:
    theirs = write_marian(tmp_path / "hf", dice, **changes)
    import_huggingface(tmp_path / "hf", tmp_path / "run")
    return theirs, RunFolder.open(tmp_path / "run")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation_function": "relu", "encoder_layers": 1},
        {"activation_function": "gelu", "decoder_layers": 1},
        {"separate": True},
        {"separate": True, "tie_word_embeddings": False},
    ],
)
def test_every_layer_is_the_same(tmp_path: Path, dice: random.Random, changes: dict[str, Any]) -> None:
    theirs, run = imported(tmp_path, dice, **changes)
    model, source, target, _, _ = loaded(run)
    numbers = numbers_of(run, source, target)
    found, expected = every_layer(model, theirs, numbers)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    with torch.no_grad():
        model.decoder.blocks[-1].cross.value.weight[0] += 0.1
    found, expected = every_layer(model, theirs, numbers)
    assert (found - expected).abs().max() > 1e-3


@pytest.fixture(scope="module", params=[False, True], ids=["shared", "separate"])
def known(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> tuple[Any, RunFolder]:
    """Once for several tests: it takes a second."""
    return imported(tmp_path_factory.mktemp("known"), random.SystemRandom(), separate=request.param)


@pytest.mark.parametrize("beam", [1, 5])
def test_translations_are_those_of_generate(known: tuple[Any, RunFolder], dice: random.Random, beam: int) -> None:
    """Token by token; where two outputs have the same score to 1e-5, either may win."""
    theirs, run = known
    model, source, target, _, _ = loaded(run)
    numbers = numbers_of(run, source, target)
    rows = source.encode([sentence(dice) for _ in range(60)])
    batch = source_batch(rows)
    for early, patience in ((False, None), (True, 1.0)):
        options = SearchOptions(beam, max_length=LIMIT, stopping="transformers", patience=patience)
        said = theirs.generate(
            input_ids=torch.tensor(numbers.source)[batch.ids],
            attention_mask=batch.mask.long(),
            num_beams=beam,
            max_new_tokens=LIMIT,
            early_stopping=early,
            bad_words_ids=[[theirs.config.pad_token_id]],
            return_dict_in_generate=True,
            output_scores=True,
        )
        different = set()
        for place, (found, row) in enumerate(
            zip(generate(model, batch, options), said.sequences.tolist(), strict=True)
        ):
            expected = row[1 : row.index(numbers.target[END], 1)]
            different.add(tuple(expected))
            tie = beam > 1 and abs(found[0].score - float(said.sequences_scores[place])) < 1e-5
            assert tie or [numbers.target[id] for id in found[0].tokens] == expected, place
        assert len(different) > 1


@pytest.mark.full
def test_a_run_translates_text_as_they_do(tmp_path: Path, dice: random.Random) -> None:
    """From text to text, through both tokenizers and the engine that `jumok translate` takes."""
    theirs, run = imported(tmp_path, dice)
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path / "hf")
    texts = [">>fra<< " + sentence(dice) if number % 3 else sentence(dice) for number in range(30)]
    translator = jumok.load(run.path)
    assert (translator.recipe.search.beam, translator.recipe.search.stopping) == (5, "transformers")
    found = translator.translate(texts, max_length=LIMIT)
    rows = theirs.generate(
        **tokenizer(texts, return_tensors="pt", padding=True), num_beams=5, max_new_tokens=LIMIT,
        bad_words_ids=[[theirs.config.pad_token_id]],
    )  # fmt: skip
    expected = [" ".join(text.split()) for text in tokenizer.batch_decode(rows, skip_special_tokens=True)]
    assert sum(ours == text for ours, text in zip(found, expected, strict=True)) >= 29  # a tie may be broken otherwise


def test_positions_are_theirs() -> None:
    width = 2 * int(torch.randint(4, 40, ()))
    module = importlib.import_module("transformers.models.marian.modeling_marian")
    table = module.MarianSinusoidalPositionalEmbedding(100, width)
    torch.testing.assert_close(positions(100, width), table.create_weight(), atol=1e-6, rtol=0)


def test_start_is_their_padding_and_never_probable(tmp_path: Path, dice: random.Random) -> None:
    theirs = write_marian(tmp_path, dice)
    found = read_marian(tmp_path)
    words, pad = found.weights["embedding.weight"], theirs.config.pad_token_id
    assert torch.equal(words[START], theirs.model.shared.weight[pad])
    assert torch.equal(words[PAD], words[START])
    assert found.source.rows == found.target.rows
    assert sorted([*found.target.rows[:START], *found.target.rows[START + 1 :]]) == list(range(pad + 1))
    assert torch.softmax(found.weights["bias"], 0)[START] == 0


def test_verify_compares_and_fails_where_it_should(tmp_path: Path, dice: random.Random) -> None:
    _, run = imported(tmp_path, dice)
    told = verify_huggingface(tmp_path / "hf", run.path)
    assert told.startswith("verified: ")
    assert "texts are cut alike" in told
    weights = load_file(tmp_path / "hf" / "model.safetensors")
    weights["model.decoder.layers.1.fc2.bias"][0] += 1
    save_file(weights, tmp_path / "hf" / "model.safetensors", {"format": "pt"})
    with pytest.raises(Failure, match="is not what the checkpoint is there"):
        verify_huggingface(tmp_path / "hf", run.path)


def test_a_library_that_adds_up_otherwise_is_not_asked(
    tmp_path: Path, dice: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before 0.2.2 SentencePiece took another cut where rounding decides: no fault of the file's."""
    _, run = imported(tmp_path, dice)
    library = pytest.importorskip("sentencepiece")
    monkeypatch.setattr(library, "__version__", "0.2.1")
    assert "texts are cut alike" not in verify_huggingface(tmp_path / "hf", run.path)
    monkeypatch.setattr(library, "__version__", "0.10.0.post1")
    assert "texts are cut alike" in verify_huggingface(tmp_path / "hf", run.path)


def test_same_translations_sees_another_model(tmp_path: Path, dice: random.Random) -> None:
    theirs, run = imported(tmp_path, dice)
    model, source, target, _, _ = loaded(run)
    numbers = numbers_of(run, source, target)
    assert same_translations(model, theirs, numbers, []) == (20, 20)
    torch.nn.init.normal_(model.bias)
    same, count = same_translations(model, theirs, numbers, [])
    assert same < count


def test_what_no_search_does_here_is_told(tmp_path: Path, sound: Path) -> None:
    shutil.copytree(sound, tmp_path / "hf")
    assert not any("searches" in note for note in import_huggingface(tmp_path / "hf", tmp_path / "plain"))
    changed_generation(repetition_penalty=1.3, length_penalty=-2.0, bad_words_ids=[[7]], min_length=0)(tmp_path / "hf")
    (told,) = (note for note in import_huggingface(tmp_path / "hf", tmp_path / "run") if "searches" in note)
    for word in ("repetition_penalty 1.3", "length_penalty -2.0", "bad_words_ids"):
        assert word in told
    assert "min_length" not in told


Change = Callable[[Path], None]


def changed_config(**changes: Any) -> Change:
    def change(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text()) | changes
        kept = {key: value for key, value in config.items() if value is not ...}
        (folder / "config.json").write_text(json.dumps(kept))

    return change


def changed_generation(**changes: Any) -> Change:
    def change(folder: Path) -> None:
        file = folder / "generation_config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return change


def linked(name: str) -> Change:
    """To a file of its reader's, which would go into the run, and out again with the next export."""

    def change(folder: Path) -> None:
        private = folder.parent / "private.txt"
        private.write_text("nobody else's")
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(private)

    return change


def long_file(folder: Path) -> None:
    with (folder / "source.spm").open("r+b") as file:
        file.truncate(1 << 40)


def changed_tensors(change: Callable[[dict[str, torch.Tensor]], None]) -> Change:
    def apply(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors")

    return apply


def changed_vocabulary(change: Callable[[dict[str, int]], None]) -> Change:
    def apply(folder: Path) -> None:
        ids = json.loads((folder / "vocab.json").read_text())
        change(ids)
        (folder / "vocab.json").write_text(json.dumps(ids))

    return apply


def renamed(tensors: dict[str, torch.Tensor]) -> None:
    tensors["model.decoder.layers.1.fc9.weight"] = tensors.pop("model.decoder.layers.1.fc1.weight")


def narrow(tensors: dict[str, torch.Tensor]) -> None:
    tensors["model.encoder.layers.0.fc1.weight"] = tensors["model.encoder.layers.0.fc1.weight"][:-1]


def untied(tensors: dict[str, torch.Tensor]) -> None:
    tensors["lm_head.weight"] = tensors["model.shared.weight"] + 1


def odd_positions(tensors: dict[str, torch.Tensor]) -> None:
    tensors["model.encoder.embed_positions.weight"] = torch.randn(64, 32)


def to_pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")


def other_pieces(folder: Path) -> None:
    file = sentencepiece_file(random.SystemRandom(), upper=True)
    (folder / "source.spm").write_bytes(file)
    ids = json.loads((folder / "vocab.json").read_text())
    fewer = {name: id for name, id in ids.items() if not name.strip("▁").isupper()}
    (folder / "vocab.json").write_text(json.dumps(fewer))


def cut_file(folder: Path) -> None:
    (folder / "target.spm").write_bytes((folder / "target.spm").read_bytes()[:700])


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marian") / "hf"
    write_marian(folder, random.SystemRandom())
    return folder


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (changed_config(d_model=...), r"config\.json: missing key 'd_model'"),
        (changed_config(scale_embedding=...), r"config\.json: missing key 'scale_embedding'"),
        (changed_config(activation_function=...), r"config\.json: missing key 'activation_function'"),
        (changed_config(scale_embedding=False), "scale_embedding is False"),
        (changed_config(normalize_before=True), "normalize_before is True"),
        (changed_config(activation_function="tanh"), "activation_function 'tanh'"),
        (changed_config(decoder_ffn_dim=7), "decoder_ffn_dim 7"),
        (changed_config(tie_word_embeddings=False), "tie_word_embeddings is false"),
        (changed_config(decoder_start_token_id=0), "decoder_start_token_id 0"),
        (changed_config(encoder_attention_heads=5, decoder_attention_heads=5), "config.json: .*heads"),
        (changed_config(d_model=64), r"model\.safetensors: .* but config\.json asks for .*d_model 64"),
        (changed_config(decoder_layers=9), r"no tensor model\.decoder\.layers\.3\..*decoder_layers 9"),
        (changed_config(encoder_layers=10**12), r"no tensor model\.encoder\.layers\.2\."),
        (changed_config(eos_token_id=1), r'vocab\.json: "</s>" has id 0, but config\.json has eos_token_id 1'),
        (changed_config(share_encoder_decoder_embeddings=False), r"no tensor model\.encoder\.embed_tokens\.weight"),
        (changed_config(model_type="bart"), "model_type is 'bart'"),
        (changed_tensors(renamed), r"no tensor model\.decoder\.layers\.1\.fc1\.weight"),
        (changed_tensors(narrow), r"encoder\.layers\.0\.fc1\.weight is 47 × 32, .* 48 × 32 \(encoder_ffn_dim 48\)"),
        (changed_tensors(untied), "should be the same numbers"),
        (changed_tensors(odd_positions), "not the sines and cosines"),
        (changed_vocabulary(lambda ids: ids.pop("<unk>")), r'vocab\.json: the token "<unk>" is not there'),
        (changed_vocabulary(lambda ids: ids.update(more=10**6)), r"vocab\.json: its highest id is 1,000,000"),
        (changed_vocabulary(lambda ids: ids.update(more=5)), r"vocab\.json: two pieces have the same id"),
        (other_pieces, r"vocab\.json: has ids for only .* pieces of source\.spm"),
        (cut_file, r"target\.spm: not the file of a SentencePiece model"),
        (lambda folder: (folder / "vocab.json").unlink(), r"vocab\.json: is missing"),
        (lambda folder: (folder / "source.spm").unlink(), r"source\.spm: cannot be read"),
        (changed_config(vocab_size=10**11), r"but config\.json asks for .*100000000000 \(vocab_size 100000000000\)"),
        (changed_config(max_position_embeddings=10**12), "max_position_embeddings is 1,000,000,000,000, more than any"),
        (changed_config(dropout=2), r"config\.json: dropout: it must be"),
        (changed_generation(num_beams="many"), r"search\.beam"),
        (linked("added_tokens.json"), r"added_tokens\.json: a link that leads out of the folder"),
        (linked("target.spm"), r"target\.spm: a link that leads out of the folder"),
        (long_file, r"source\.spm: more than .* bytes"),
        (to_pickle, r"pytorch_model\.bin.*convert it to safetensors"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, sound: Path, change: Change, told: str) -> None:
    shutil.copytree(sound, tmp_path / "hf")
    change(tmp_path / "hf")
    with pytest.raises(BadInput, match=told):
        import_huggingface(tmp_path / "hf", tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert not list(tmp_path.glob(".importing*"))
