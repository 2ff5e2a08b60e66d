"""Import of PyTorch modules: `torch.export` traces a module, and each node of the trace becomes layers."""
