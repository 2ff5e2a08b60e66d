"""The open document: its edits, files, template views and comparison."""
