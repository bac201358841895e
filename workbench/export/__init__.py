"""Capture of models as exported programs: `torch.export`, `.pt2` files, TorchScript."""

from workbench.export.capture import export, load, save

__all__ = ["export", "load", "save"]
