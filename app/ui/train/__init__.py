"""Train workspace: starting runs, watching them, comparing them, and going back to their steps."""
