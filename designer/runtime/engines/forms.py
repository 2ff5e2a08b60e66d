"""Names of the forms of ONNX files in smaller number formats, after the programs that read them."""

ONNX_RUNTIME = "onnxruntime"
TENSORRT = "tensorrt"
