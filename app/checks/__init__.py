"""Maintainers' tools: the GPU check, the operator reference, the catalogue of texts, screenshots."""
