"""Open documents: edits, files, template views, comparison and recovery."""
