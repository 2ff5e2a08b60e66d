"""The network as a value: types, layers, edits, history, shape inference, diagnostics."""
