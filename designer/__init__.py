"""The domain: networks as data. Importing it loads neither Qt nor torch nor onnx."""
