"""A BERT's run as `transformers` keeps such models, under the class that computes the same:

    masked words   BertForMaskedLM, BertForPreTraining (which also tells the order of two texts), BertModel (no head)
    a text         BertForSequenceClassification (labels; a number, in its own unit)
    each word      BertForTokenClassification, BertForQuestionAnswering
    two texts, each by itself, and a number of how alike they are: BertModel, whose vectors are compared

What has another head here than there is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jumok.data.batch import Sequences
from jumok.errors import BadInput
from jumok.interop.bert import COUNTED, HIDDEN_WORDS, NAMES
from jumok.interop.cuts import cut_otherwise
from jumok.interop.export_tokenizer import tokenizer_files
from jumok.interop.origin import has, was_there
from jumok.interop.outgoing import ROWS, Compared, Outgoing, labels, load_run, refuse
from jumok.interop.run_folder import HEADLESS
from jumok.models.bert import Bert, HiddenWords
from jumok.models.reader import Likeness, TextLabeller, WordLabeller
from jumok.recipe import BertSection, Recipe
from jumok.tasks.example_task import LABELS
from jumok.tasks.labelling import Numbers, classes_of, numbers_of, read_labels
from jumok.text.tokenizer import Tokenizer
from jumok.training.run import RunFolder

LONGEST = 24  # tokens of a row that is compared
PURPOSES = {
    "BertForMaskedLM": "fill-mask", "BertForPreTraining": "fill-mask", "BertModel": "feature-extraction",
    "BertForSequenceClassification": "text-classification", "BertForTokenClassification": "token-classification",
    "BertForQuestionAnswering": "question-answering",
}  # fmt: skip


def outgoing_bert(run: RunFolder, recipe: Recipe) -> Outgoing:
    """The run's best checkpoint, under their names."""
    section = recipe.model
    assert isinstance(section, BertSection)
    allowed = {
        "norm": ("post",), "norm_kind": ("layer",), "final_norm": (None, False), "position": ("learned",),
        "activation": ("gelu", "relu", "silu"), "key_value_heads": (None, section.heads),
    }  # fmt: skip
    refuse(section, allowed, "BERT")
    tokenizer = Tokenizer.load(run.tokenizer / "text")
    model, architecture, more = _model(run, recipe, section, tokenizer)
    step, notes = load_run(run, model)
    limit = recipe.data.window if recipe.task == "pretraining" else recipe.data.max_length
    limit = min(limit, section.max_positions)
    files = tokenizer_files(tokenizer, limit, notes)
    if architecture == "BertModel":
        files |= _sentence_files(section, limit)
    if section.activation_dropout:
        notes.append("model.activation_dropout has no place there; it matters only for who goes on training")
    notes.append(_about_long_texts(run, recipe, architecture, limit))
    scale = _scale(run, recipe)
    head = getattr(model, "head", None)
    if scale is not None and isinstance(head, Likeness):
        notes.append(_about_likeness(head, scale))
    return Outgoing(
        architecture,
        {**_config(section, tokenizer.size, architecture), **more},
        _weights(run, recipe, model, architecture, scale),
        files,
        lambda theirs: _compared(model, architecture, section, tokenizer.size, scale, theirs),
        PURPOSES[architecture],
        _usage(architecture, section, recipe.task),
        step,
        notes,
        lambda theirs: cut_otherwise(tokenizer, theirs, limit),
    )


def _model(
    run: RunFolder, recipe: Recipe, section: BertSection, tokenizer: Tokenizer
) -> tuple[nn.Module, str, dict[str, Any]]:
    """Ours, their class, and what config.json says of its head."""
    file = run.path / LABELS
    if recipe.task == "pretraining":
        ordered = recipe.masking.sentences != "none"
        headless = recipe.imported is not None and HEADLESS in recipe.imported
        kind = "BertModel" if headless else "BertForPreTraining" if ordered else "BertForMaskedLM"
        return HiddenWords(Bert(section, tokenizer.size), ordered), kind, {}
    if recipe.task == "answering":
        return WordLabeller(section, tokenizer.size, 2), "BertForQuestionAnswering", {}
    if recipe.task == "tagging":
        tags = classes_of(read_labels(file), file)
        return WordLabeller(section, tokenizer.size, tags.size), "BertForTokenClassification", labels(tags.names)
    if recipe.task == "regression":
        if section.pairs == "apart":
            return TextLabeller(section, tokenizer.size, 1), "BertModel", {}
        head: dict[str, Any] = {**labels(("number",)), "problem_type": "regression"}
        count = 1
    elif recipe.task == "classification":
        classes = classes_of(read_labels(file), file)
        head, count = {**labels(classes.names), "problem_type": "single_label_classification"}, classes.size
        if section.pairs == "apart":
            raise BadInput(
                "model.pairs: apart: labels stand here on [u; v; |u − v|; u ⊙ v] of two texts, and transformers has no "
                "such head: train with model.pairs=together to write it out"
            )
    else:
        raise BadInput(f"a run of task {recipe.task} with a BERT has no place in transformers")
    if section.pooling != "first":
        raise BadInput(
            f"model.pooling: {section.pooling}: labels stand here on the mean over all words, those of transformers' "
            "BertForSequenceClassification on tanh(W h + b) of the first: train with model.pooling=first for that"
        )
    return TextLabeller(section, tokenizer.size, count), "BertForSequenceClassification", head


def _config(section: BertSection, vocabulary: int, architecture: str) -> dict[str, Any]:
    return {
        "model_type": "bert", "architectures": [architecture], "dtype": "float32", "vocab_size": vocabulary,
        "hidden_size": section.width, "num_hidden_layers": section.layers, "num_attention_heads": section.heads,
        "intermediate_size": section.feed_forward, "hidden_act": section.activation,
        "hidden_dropout_prob": section.dropout, "attention_probs_dropout_prob": section.attention_dropout,
        "max_position_embeddings": section.max_positions, "type_vocab_size": section.segments or 2,
        "layer_norm_eps": section.norm_epsilon, "initializer_range": 0.02, "pad_token_id": 0,
        "position_embedding_type": "absolute", "tie_word_embeddings": True,
    }  # fmt: skip


def _scale(run: RunFolder, recipe: Recipe) -> Numbers | None:
    file = run.path / LABELS
    return numbers_of(read_labels(file), file) if recipe.task == "regression" else None


def _weights(
    run: RunFolder, recipe: Recipe, model: nn.Module, architecture: str, scale: Numbers | None
) -> dict[str, Tensor]:
    state: dict[str, Tensor] = dict(model.state_dict())
    reader = {name.removeprefix("reader."): one for name, one in state.items() if name.startswith("reader.")}
    if "segments.weight" not in reader:  # nothing is added to any word
        reader["segments.weight"] = torch.zeros(2, reader["embedding.weight"].size(1))
    pooled = architecture in ("BertModel", "BertForPreTraining", "BertForSequenceClassification")
    # a pooler that came with an imported model stays; one that did not is fresh and means nothing
    pooled = (pooled and has(run, "has_pooler")) or was_there(run, "has_pooler")
    prefix = "" if architecture == "BertModel" else "bert."
    found = {
        f"{prefix}{theirs}": tensor
        for theirs, tensor in renamed(reader, NAMES).items()
        if pooled or not theirs.startswith("pooler.")
    }
    if architecture in ("BertForMaskedLM", "BertForPreTraining"):
        head = {name: one for name, one in state.items() if not name.startswith(("reader.", "order."))}
        found |= renamed(head, HIDDEN_WORDS)
    their_head = {
        "BertForPreTraining": ("order.scores", "cls.seq_relationship"),
        "BertForSequenceClassification": ("head.scores", "classifier"),
        "BertForTokenClassification": ("head.scores", "classifier"),
        "BertForQuestionAnswering": ("head.scores", "qa_outputs"),
    }.get(architecture)
    if their_head is not None:
        ours, theirs = their_head
        weight, bias = state[f"{ours}.weight"], state[f"{ours}.bias"]
        if scale is not None:  # numbers are learned as (y − mean) / scale; theirs are y
            weight, bias = (weight.double() * scale.scale).float(), (bias.double() * scale.scale + scale.mean).float()
        found |= {f"{theirs}.weight": weight, f"{theirs}.bias": bias}
    return {name: tensor.detach().contiguous() for name, tensor in found.items()}


def renamed(state: Mapping[str, Tensor], names: Mapping[str, str]) -> dict[str, Tensor]:
    """Ours → theirs, by the table that reads theirs."""
    theirs = {ours: name for name, ours in names.items()}
    found = {}
    for name, tensor in state.items():
        module, _, kind = name.rpartition(".")
        pattern = theirs[COUNTED.sub(".{}.", f"{module}.").removesuffix(".")]
        found[f"{pattern.format(*COUNTED.findall(f'{module}.'))}.{kind}"] = tensor
    return found


def _compared(
    model: Any, architecture: str, section: BertSection, vocabulary: int, scale: Numbers | None, theirs: Any
) -> Compared:
    longest = min(LONGEST, section.max_positions)
    lengths = torch.randint(1, longest + 1, (ROWS,)).tolist()
    words = Sequences.pad([torch.randint(1, vocabulary, (length,)).tolist() for length in (longest, *lengths)])
    segments = torch.randint(section.segments or 2, words.ids.shape)
    said = theirs(input_ids=words.ids, attention_mask=words.mask.long(), token_type_ids=segments)
    given = segments if section.segments else None
    what = f"of {ROWS + 1} random texts"
    if architecture == "BertModel":
        hidden = model.reader(words, given)
        return hidden[words.mask], said.last_hidden_state[words.mask], f"the hidden states {what}"
    if architecture in ("BertForMaskedLM", "BertForPreTraining"):
        hidden = model.reader(words, given)
        found = model.head(hidden)[words.mask]
        if architecture == "BertForMaskedLM":
            return found, said.logits[words.mask], f"the scores of words {what}"
        order = model.order(model.reader.first(hidden, words))
        expected = torch.cat([said.prediction_logits[words.mask].flatten(), said.seq_relationship_logits.flatten()])
        return torch.cat([found.flatten(), order.flatten()]), expected, f"the scores of words and order {what}"
    found = model(words, given)
    if architecture == "BertForSequenceClassification":
        if scale is not None:
            found = found * scale.scale + scale.mean
        return found, said.logits, f"the scores {what}"
    expected = (
        said.logits
        if architecture == "BertForTokenClassification"
        else torch.stack([said.start_logits, said.end_logits], -1)
    )
    return found[words.mask], expected[words.mask], f"the scores of words {what}"


def _sentence_files(section: BertSection, limit: int) -> dict[str, str]:
    """How Sentence Transformers make one vector of a text: the mean, or as BERT's pooler does it, which they do not."""
    if section.pooling != "mean":
        return {}
    modes = {"cls_token": False, "mean_tokens": True, "max_tokens": False, "mean_sqrt_len_tokens": False}
    kind = "sentence_transformers.models"
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": f"{kind}.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{kind}.Pooling"},
    ]
    pooling = {"word_embedding_dimension": section.width, **{f"pooling_mode_{key}": on for key, on in modes.items()}}
    return {
        "modules.json": json.dumps(modules, indent=1) + "\n",
        "sentence_bert_config.json": json.dumps({"max_seq_length": limit, "do_lower_case": False}) + "\n",
        str(Path("1_Pooling") / "config.json"): json.dumps(pooling, indent=1) + "\n",
    }


def _about_long_texts(run: RunFolder, recipe: Recipe, architecture: str, limit: int) -> str:
    """Their tokenizer cuts nothing off unless it is told to; what is said then of a long text, is said of another."""
    assert isinstance(recipe.model, BertSection)
    long, positions = f"a text of more than {limit} tokens", recipe.model.max_positions
    theirs = f"takes it whole, up to {positions} tokens" if positions > limit else "has no positions for it"
    if recipe.task in ("tagging", "answering"):
        return f"{long} is read here in windows; transformers {theirs}"
    if architecture in ("BertForMaskedLM", "BertForPreTraining"):
        return f"{long} is refused here; transformers {theirs}"
    told = f"{long} loses its end here; transformers does the same with truncation=True, and else {theirs}"
    together = architecture == "BertForSequenceClassification" and read_labels(run.path / LABELS).get("pairs", True)
    if together and limit % 2 == 0:  # an odd number is left for the words of both
        told += (
            ". Of two texts that are both too long jumok keeps one token more of the first, transformers of the longer "
            "one, or of the second where they are alike"
        )
    return told


def _about_likeness(head: Likeness, scale: Numbers) -> str:
    slope, shift = float(head.scale) * scale.scale, float(head.shift) * scale.scale + scale.mean
    return (
        "transformers has no head for two texts that are read apart: compare their vectors, the number is "
        f"{slope:.6g} · cos(u, v) + {shift:.6g}"
    )


def _usage(architecture: str, section: BertSection, task: str) -> str:
    shortened = ", truncation=True" if architecture in ("BertModel", "BertForSequenceClassification") else ""
    told = {
        "BertForMaskedLM": 'f"a text with {tokenizer.mask_token} in it"',
        "BertForPreTraining": 'f"a text with {tokenizer.mask_token} in it"',
        "BertForQuestionAnswering": '"a question", "a text that answers it"',
    }
    lines = [
        f"from transformers import AutoTokenizer, {architecture}",
        "",
        'tokenizer = AutoTokenizer.from_pretrained("FOLDER")',
        f'model = {architecture}.from_pretrained("FOLDER").eval()',
        f'given = tokenizer({told.get(architecture, _quoted("a text"))}, return_tensors="pt"{shortened})',
        "output = model(**given)",
    ]
    if architecture == "BertModel":
        vector = "output.last_hidden_state.mean(dim=1)" if section.pooling == "mean" else "output.pooler_output"
        lines.append(f"vector = {vector}")
    elif architecture in ("BertForMaskedLM", "BertForPreTraining"):
        scores = "logits" if architecture == "BertForMaskedLM" else "prediction_logits"
        lines.append(f'(scores,) = output.{scores}[given["input_ids"] == tokenizer.mask_token_id]')
        lines.append("words = tokenizer.convert_ids_to_tokens(scores.topk(5).indices)")
    elif architecture == "BertForTokenClassification":
        lines.append(
            "tags = [model.config.id2label[int(one)] for one in output.logits[0].argmax(dim=-1)]  # of each token"
        )
    elif architecture == "BertForQuestionAnswering":
        lines.append("start, end = int(output.start_logits.argmax()), int(output.end_logits.argmax())")
        lines.append(
            'answer = tokenizer.decode(given["input_ids"][0, start : end + 1])  # nothing, if it begins after its end'
        )
    elif task == "regression":
        lines.append("number = float(output.logits)")
    else:
        lines.append("label = model.config.id2label[int(output.logits.argmax())]")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return f'"{text}"'
