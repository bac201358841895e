"""The detection cascade around MTCNN's three networks, in numpy.

Source: K. Zhang et al., "Joint Face Detection and Alignment using Multi-task Cascaded Convolutional
Networks", IEEE Signal Processing Letters 23(10), 2016, section II: P-Net proposes windows on an image
pyramid, R-Net discards most of them, O-Net keeps the faces and places five landmarks; box regression and
non-maximum suppression follow each network.

A network here is any function from an array `(N, 3, H, W)` float32 to a tuple of arrays, so that the same
cascade runs on eager PyTorch and on the native runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cascade", "Faces", "nms", "pyramid", "resize_area"]

Array = NDArray[np.float32]
Net = Callable[[Array], tuple[Array, ...]]

CELL, STRIDE = 12, 2  # P-Net sees windows of 12 x 12 pixels, two pixels apart
SMALLEST_IMAGE = 14


@dataclass(frozen=True)
class Faces:
    """What was found in one image.

    Attributes:
        boxes: `(F, 4)` pixels: left, top, right, bottom.
        scores: `(F,)` probability.
        landmarks: `(F, 5, 2)` pixels: eyes, nose, corners of the mouth, each x and y.
    """

    boxes: Array
    scores: Array
    landmarks: Array

    def __len__(self) -> int:
        return len(self.boxes)


@dataclass(frozen=True)
class Cascade:
    """The detector.

    Attributes:
        pnet: `(1, 3, H, W)` -> offsets `(1, 4, h, w)`, probabilities `(1, 2, h, w)`.
        rnet: `(N, 3, 24, 24)` -> offsets `(N, 4)`, probabilities `(N, 2)`.
        onet: `(N, 3, 48, 48)` -> offsets `(N, 4)`, landmarks `(N, 10)`, probabilities `(N, 2)`.
        min_face: Smallest face to look for, pixels.
        factor: Ratio of one image of the pyramid to the next.
        thresholds: Least probability after each network.
        max_batch: Most candidates in one call of R-Net or O-Net.
    """

    pnet: Net
    rnet: Net
    onet: Net
    min_face: float = 40.0
    factor: float = 0.709
    thresholds: tuple[float, float, float] = (0.6, 0.7, 0.7)
    max_batch: int = 256

    def __call__(self, image: NDArray[np.uint8]) -> Faces:
        """Find the faces in an image `(H, W, 3)` uint8."""
        pixels = (image.astype(np.float32) - 127.5) / 128.0
        boxes = self.propose(pixels)
        boxes = self.refine(pixels, boxes)
        return self.place(pixels, boxes)

    def propose(self, pixels: Array) -> Array:
        """Candidate boxes `(N, 4)` from P-Net over the pyramid, suppressed within each scale and over all."""
        height, width = pixels.shape[:2]
        found = [np.zeros((0, 4), np.float32)]
        scores = [np.zeros((0,), np.float32)]
        for scale in pyramid(height, width, self.min_face, self.factor):
            small = resize_area(pixels, round(height * scale), round(width * scale))
            offsets, probability = self.pnet(_as_batch(small[None]))
            rows, columns = np.nonzero(probability[0, 1] >= self.thresholds[0])
            corner = np.stack([columns, rows], 1).astype(np.float32) * STRIDE
            boxes = np.concatenate([corner, corner + CELL], 1) / np.float32(scale)
            boxes = _regress(boxes, offsets[0, :, rows, columns])
            score = probability[0, 1, rows, columns]
            keep = nms(boxes, score, 0.5)
            found.append(boxes[keep])
            scores.append(score[keep])
        boxes, score = np.concatenate(found), np.concatenate(scores)
        return _square(boxes[nms(boxes, score, 0.7)])

    def refine(self, pixels: Array, boxes: Array) -> Array:
        """What R-Net leaves of the candidates `(N, 4)`."""
        boxes, crops = _crop(pixels, boxes, 24)
        if not len(boxes):
            return boxes
        offsets, probability = self._in_batches(self.rnet, crops)
        passed = probability[:, 1] >= self.thresholds[1]
        boxes, offsets, score = boxes[passed], offsets[passed], probability[passed, 1]
        keep = nms(boxes, score, 0.7)
        return _square(_regress(boxes[keep], offsets[keep]))

    def place(self, pixels: Array, boxes: Array) -> Faces:
        """The faces among the candidates `(N, 4)`, with their landmarks, by O-Net."""
        boxes, crops = _crop(pixels, boxes, 48)
        if not len(boxes):
            empty = np.zeros((0, 4), np.float32)
            return Faces(empty, empty[:, 0], np.zeros((0, 5, 2), np.float32))
        offsets, points, probability = self._in_batches(self.onet, crops)
        passed = probability[:, 1] >= self.thresholds[2]
        boxes, offsets, points, score = boxes[passed], offsets[passed], points[passed], probability[passed, 1]
        size = boxes[:, None, 2:] - boxes[:, None, :2]
        landmarks = boxes[:, None, :2] + points.reshape(-1, 2, 5).transpose(0, 2, 1) * size
        boxes = _regress(boxes, offsets)
        keep = nms(boxes, score, 0.7, of_smaller=True)
        return Faces(boxes[keep], score[keep], landmarks[keep])

    def _in_batches(self, net: Net, crops: Array) -> tuple[Array, ...]:
        parts = [net(crops[start : start + self.max_batch]) for start in range(0, len(crops), self.max_batch)]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def pyramid(height: int, width: int, min_face: float, factor: float) -> list[float]:
    """The scales at which P-Net's window covers faces from `min_face` to the whole image."""
    scale = CELL / min_face
    scales = []
    while min(height, width) * scale >= SMALLEST_IMAGE:
        scales.append(scale)
        scale *= factor
    return scales


def resize_area(image: Array, height: int, width: int) -> Array:
    """Resize `(H, W, C)` to `(height, width, C)`: each pixel is the mean of the pixels that it covers.

    Output row i covers the input rows from floor(i H / height) to ceil((i + 1) H / height), columns likewise.
    """

    def bounds(size: int, wanted: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        index = np.arange(wanted)
        return index * size // wanted, -((-(index + 1) * size) // wanted)

    top, bottom = bounds(image.shape[0], height)
    left, right = bounds(image.shape[1], width)
    sums = np.zeros((image.shape[0] + 1, image.shape[1] + 1, image.shape[2]))
    sums[1:, 1:] = image.cumsum(0, dtype=np.float64).cumsum(1)
    rows = sums[bottom] - sums[top]
    covered = rows[:, right] - rows[:, left]
    count = (bottom - top)[:, None, None] * (right - left)[None, :, None]
    return (covered / count).astype(np.float32)


def nms(boxes: Array, scores: Array, threshold: float, *, of_smaller: bool = False) -> NDArray[np.int64]:
    """Non-maximum suppression, greedy from the highest score.

    Args:
        boxes: `(N, 4)`.
        scores: `(N,)`.
        threshold: Overlap above which the lower score goes.
        of_smaller: Measure the overlap by the smaller box instead of by the union.

    Returns:
        Indices of the boxes that stay, by falling score.
    """
    area = np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0), axis=1)
    order = np.argsort(-scores, kind="stable")
    kept = []
    while order.size:
        best, rest = order[0], order[1:]
        kept.append(best)
        low = np.maximum(boxes[best, :2], boxes[rest, :2])
        high = np.minimum(boxes[best, 2:], boxes[rest, 2:])
        shared = np.prod(np.maximum(high - low, 0), axis=1)
        whole = np.minimum(area[best], area[rest]) if of_smaller else area[best] + area[rest] - shared
        order = rest[shared <= threshold * whole]
    return np.array(kept, np.int64)


def _regress(boxes: Array, offsets: Array) -> Array:
    """Move each edge by the offset that the network gives, in units of the box's size."""
    size = boxes[:, 2:] - boxes[:, :2]
    return boxes + offsets * np.concatenate([size, size], 1)


def _square(boxes: Array) -> Array:
    """The square of the longer side around each box's centre."""
    centre = (boxes[:, :2] + boxes[:, 2:]) / 2
    half = (boxes[:, 2:] - boxes[:, :2]).max(1, keepdims=True, initial=0) / 2
    return np.concatenate([centre - half, centre + half], 1)


def _crop(pixels: Array, boxes: Array, size: int) -> tuple[Array, Array]:
    """The boxes that reach into the image, and what they hold, resized to `(N, 3, size, size)`."""
    limit = np.array([pixels.shape[1], pixels.shape[0]])
    low = np.clip(np.floor(boxes[:, :2]), 0, limit).astype(int)
    high = np.clip(np.ceil(boxes[:, 2:]), 0, limit).astype(int)
    inside = ((high - low) >= 1).all(1)
    crops = [
        resize_area(pixels[top:bottom, left:right], size, size)
        for (left, top), (right, bottom) in zip(low[inside], high[inside], strict=True)
    ]
    if not crops:
        return boxes[:0], np.zeros((0, 3, size, size), np.float32)
    return boxes[inside], _as_batch(np.stack(crops))


def _as_batch(images: Array) -> Array:
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
