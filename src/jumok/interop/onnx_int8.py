"""Graphs whose products are of 8-bit whole numbers: smaller files, and faster where products are what takes time."""

from __future__ import annotations

import importlib
import logging
from pathlib import Path

from jumok.errors import BadInput, Failure

PRECISIONS = ("float32", "int8")


def check_precision(precision: str) -> None:
    if precision not in PRECISIONS:
        raise BadInput(
            f"--precision {precision}: ONNX files are made in {' or '.join(PRECISIONS)}"
            f"{' (bfloat16 is for jumok translate --engine torch)' * (precision == 'bfloat16')}. Give one of these"
        )


def quantise(folder: Path) -> None:
    """Weights of products as 8-bit whole numbers, a scale for each column; what they are multiplied with is rounded as
    it comes (dynamic quantisation)."""
    quantization = importlib.import_module("onnxruntime.quantization")
    for path in folder.glob("*.onnx"):
        whole = path.with_suffix(".whole")
        _as_products(path, whole)
        logging.disable(logging.WARNING)  # it recommends a preparation that is not made here
        try:
            quantization.quantize_dynamic(
                whole,
                path,
                op_types_to_quantize=["MatMul", "Gemm"],
                per_channel=True,
                weight_type=quantization.QuantType.QInt8,
            )
        except OSError:
            raise
        except Exception as error:  # it writes files on the way, and does not look whether they are whole
            raise Failure(
                f"onnxruntime cannot make int8 of {path.name} ({error}): is there space left on the disk ({folder})?"
            ) from None
        finally:
            logging.disable(logging.NOTSET)
        whole.unlink()


def _as_products(path: Path, out: Path) -> None:
    """x Wᵀ + b as a product and a sum, with Wᵀ written out once for all that use it.

    The quantisation turns the weights round where they lie: again for every further map that has the same ones, as in a
    loop that is written out, and for a look-up of word vectors that are the last layer's weights, too. And weights that
    are reached by another name it takes for something that is computed.
    """
    onnx = importlib.import_module("onnx")
    model = onnx.load(path)
    weights = {one.name: one for one in model.graph.initializer}
    made = {one.name for one in model.graph.output}
    nodes, names = [], dict[str, str]()
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = names.get(name, name)
        if node.op_type == "Identity" and node.input[0] in weights and node.output[0] not in made:
            names[node.output[0]] = node.input[0]
            continue
        given = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        plain = given.pop("transB", 0) == 1 and set(given.values()) <= {1.0}  # alpha and beta; or they are not there
        if node.op_type != "Gemm" or not plain or node.input[1] not in weights:
            nodes.append(node)
            continue
        turned, product = f"{node.input[1]}.turned", f"{node.output[0]}.product"
        if turned not in weights:
            array = onnx.numpy_helper.to_array(weights[node.input[1]]).T.copy()
            weights[turned] = onnx.numpy_helper.from_array(array, turned)
        nodes.append(onnx.helper.make_node("MatMul", [node.input[0], turned], [product], f"{node.name}.product"))
        bias = [node.input[2]] if len(node.input) > 2 else []
        nodes.append(
            onnx.helper.make_node("Add" if bias else "Identity", [product, *bias], list(node.output), node.name)
        )
    used = {name for node in nodes for name in node.input} | made
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(one for name, one in weights.items() if name in used)
    onnx.save(model, out)
