"""Capture of models as exported programs: `torch.export`, `.pt2` files, TorchScript."""
