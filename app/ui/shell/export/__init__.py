"""The dialogs of File > Export."""
