"""Design panels: Layer Palette, Layer Editor, Code View, Type Checking, Network Settings, Differences."""
