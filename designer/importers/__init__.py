"""Readers of networks that other programs wrote. Each makes a document, its weights and a report on what became of every node."""
