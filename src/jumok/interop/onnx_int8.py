"""Graphs whose products are of 8-bit whole numbers: smaller files, and faster where products are what takes time."""

from __future__ import annotations

import importlib
import logging
from pathlib import Path

from jumok.errors import BadInput

PRECISIONS = ("float32", "int8")


def check_precision(precision: str) -> None:
    if precision not in PRECISIONS:
        raise BadInput(f"--precision {precision}: ONNX files are made in {' or '.join(PRECISIONS)}")


def quantise(folder: Path) -> None:
    """Weights of products as 8-bit whole numbers, a scale for each column; what they are multiplied with is rounded as
    it comes (dynamic quantisation)."""
    quantization = importlib.import_module("onnxruntime.quantization")
    for path in folder.glob("*.onnx"):
        whole = path.with_suffix(".whole")
        _untie(path, whole)
        logging.disable(logging.WARNING)  # it recommends a preparation that is not made here
        try:
            quantization.quantize_dynamic(
                whole,
                path,
                op_types_to_quantize=["MatMul", "Gemm"],
                per_channel=True,
                weight_type=quantization.QuantType.QInt8,
            )
        finally:
            logging.disable(logging.NOTSET)
        whole.unlink()


def _untie(path: Path, out: Path) -> None:
    """Word vectors that are the last layer's weights, too, are there twice: the quantisation turns those round, and the
    look-up with them."""
    onnx = importlib.import_module("onnx")
    model = onnx.load(path)
    weights = {one.name: one for one in model.graph.initializer}
    looked_up = {node.input[0] for node in model.graph.node if node.op_type == "Gather"}
    for node in model.graph.node:
        if node.op_type == "Gemm" and node.input[1] in looked_up & weights.keys():
            copy = model.graph.initializer.add()
            copy.CopyFrom(weights[node.input[1]])
            copy.name = node.input[1] = f"{node.input[1]}.product"
    onnx.save(model, out)
