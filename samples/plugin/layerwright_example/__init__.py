"""An example plugin of Layerwright."""
