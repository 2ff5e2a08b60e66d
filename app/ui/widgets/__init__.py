"""What several rooms use: widgets, theme, texts and background work."""
