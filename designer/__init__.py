"""The domain: networks as data. Importing it loads neither Qt nor torch nor onnx."""

import os
import sys

# Nothing leaves the machine. Both packages look up their makers' servers and keep an id of the device in the user's
# folders as soon as they are imported, by us or by a plugin.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # ONNX Runtime
sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # OpenVINO takes its stub when it cannot import it
