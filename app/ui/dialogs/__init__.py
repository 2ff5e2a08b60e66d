"""Dialogs. They open only when a decision is due or something could not be done."""
