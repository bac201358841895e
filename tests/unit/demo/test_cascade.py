"""The cascade around MTCNN's networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mtcnn.cascade import Cascade, nms, pyramid, resize_area
from mtcnn.demo import draw, eager, photograph
from mtcnn.networks import PNet, load


@pytest.mark.parametrize("size", [(12, 20), (40, 50), (33, 47), (1, 1)])
def test_area_resize_is_that_of_torch(size: tuple[int, int]) -> None:
    image = np.random.default_rng(0).random((33, 47, 3), np.float32)
    planes = torch.from_numpy(image).permute(2, 0, 1)[None]
    wanted = torch.nn.functional.interpolate(planes, size=size, mode="area")[0].permute(1, 2, 0)
    np.testing.assert_allclose(resize_area(image, *size), wanted.numpy(), atol=1e-6)


def test_nms_keeps_the_best_of_each_heap() -> None:
    boxes = np.array([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 4, 4]], np.float32)
    scores = np.array([0.5, 0.9, 0.3, 0.8], np.float32)
    assert nms(boxes, scores, 0.5).tolist() == [1, 3, 2]
    assert nms(boxes, scores, 0.5, of_smaller=True).tolist() == [1, 2]
    assert nms(boxes[:0], scores[:0], 0.5).tolist() == []


def test_pyramid_covers_faces_of_the_least_size_to_the_whole_image() -> None:
    scales = pyramid(480, 640, 20, 0.709)
    assert scales[0] == pytest.approx(12 / 20)
    assert 480 * scales[-1] >= 14 > 480 * scales[-1] * 0.709
    assert pyramid(10, 10, 20, 0.709) == []


@pytest.mark.parametrize("size", [(14, 14), (15, 22), (61, 84)])
def test_padded_pooling_of_pnet_is_pooling_with_ceil_mode(size: tuple[int, int]) -> None:
    network: PNet = load()[0]
    image = torch.rand(1, 3, *size) * 2 - 1
    with torch.inference_mode():
        offsets, probability = network(image)
        x = torch.nn.functional.max_pool2d(network.prelu1(network.conv1(image)), 2, 2, ceil_mode=True)
        x = network.prelu3(network.conv3(network.prelu2(network.conv2(x))))
        torch.testing.assert_close(offsets, network.conv4_2(x))
        torch.testing.assert_close(probability, network.conv4_1(x).softmax(1))


def test_cascade_finds_the_astronaut_in_eager() -> None:
    image = photograph()
    faces = Cascade(*map(eager, load()))(image)
    assert len(faces) == 1
    assert faces.scores[0] > 0.99
    left, top, right, bottom = faces.boxes[0]
    assert 160 < left < 200 < 250 < right < 290
    assert 40 < top < 80 < 150 < bottom < 200
    eyes, mouth = faces.landmarks[0, :2, 1], faces.landmarks[0, 3:, 1]
    assert eyes.max() < faces.landmarks[0, 2, 1] < mouth.min(), "the nose is between eyes and mouth"
    picture = np.asarray(draw(image, faces))
    assert (picture != image).any()


def test_cascade_finds_nothing_in_noise_and_in_small_images() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (120, 100, 3)).astype(np.uint8)
    cascade = Cascade(*map(eager, load()))
    assert len(cascade(noise)) == 0
    assert len(cascade(noise[:8, :8])) == 0
