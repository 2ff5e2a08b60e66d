"""Operators: one declaration each, from which palette, editor, shapes, code, ONNX, cost and tests follow."""
