"""The export dialogs."""
