"""Blobs of delegates, opened by the backends that know their format."""

from __future__ import annotations

from workbench.backends.blob import Blob, BlobStep, BlobValue, Section, open_blob

__all__ = ["Blob", "BlobStep", "BlobValue", "Section", "open_blob"]
