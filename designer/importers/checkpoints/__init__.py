"""Checkpoints without code: recognized architectures, or a skeleton of layers."""
