"""The mathematics. A layer reads like its paper: the equation in the docstring, about ten lines in the body.

Shapes are written as suffixes where they change: `query_BTD`.

    B  sentences in the batch      T  target positions (queries)
    S  source positions (keys)     D  width of a vector
    H  heads                       V  vocabulary
    L  length, where a layer has only one
"""
