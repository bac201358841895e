"""Properties that every layout must have, on drawn graphs and on shapes that stress the engine."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import DisplayError
from workbench_widgets.layout import Layout, layout

# Read by `engine.test.ts` too.
GOLDEN = Path(__file__).parents[3] / "widgets" / "layout" / "golden.json"

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]


@dataclass
class Graph:
    width: Floats
    height: Floats
    src: Ints
    dst: Ints
    options: dict[str, float] = field(default_factory=dict)

    def lay_out(self, **more: object) -> Layout:
        return layout(self.width, self.height, self.src, self.dst, **{**self.options, **more})  # type: ignore[arg-type]


def graph(boxes: int, edges: list[tuple[int, int]], seed: int = 0) -> Graph:
    """`boxes` boxes of plausible sizes."""
    random = np.random.default_rng(seed)
    pairs = np.array(edges, np.int32).reshape(-1, 2)
    width = random.integers(30, 180, boxes).astype(np.float32)
    return Graph(width, random.integers(18, 60, boxes).astype(np.float32), pairs[:, 0], pairs[:, 1])


def random_graph(boxes: int, edges: int, seed: int, span: int | None = None) -> Graph:
    """Edges from earlier to later boxes, at most `span` further."""
    random = np.random.default_rng(seed)
    src = random.integers(0, boxes - 1, edges)
    dst = np.minimum(boxes - 1, src + 1 + random.integers(0, span or boxes, edges))
    return graph(boxes, list(zip(src.tolist(), dst.tolist(), strict=True)), seed)


def blocks(count: int) -> Graph:
    """A chain of residual blocks, each with two branches that join."""
    edges: list[tuple[int, int]] = []
    last = 0
    for _ in range(count):
        a, b, c, d, join, add = range(last + 1, last + 7)
        edges += [(last, a), (a, b), (b, c), (b, d), (c, join), (d, join), (join, add), (last, add)]
        last = add
    return graph(last + 1, edges)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Anything: back edges, edges to itself, doubled edges, ports, pieces, boxes of size zero."""
    boxes = draw(st.integers(0, 24))
    index = st.integers(-1, boxes - 1)
    edges = draw(st.lists(st.tuples(index, index), max_size=60))
    size = st.sampled_from([0.0, 1.0, 7.5, 24.0, 60.25, 300.0])
    sizes = draw(st.lists(st.tuples(size, size), min_size=boxes, max_size=boxes))
    columns = np.array(sizes, np.float32).reshape(-1, 2)
    made = graph(boxes, edges)
    made.width, made.height = columns[:, 0].copy(), columns[:, 1].copy()
    made.options = {
        "gap_x": draw(st.sampled_from([4.0, 24.0])),
        "gap_y": draw(st.sampled_from([10.0, 36.0])),
        "max_span": draw(st.sampled_from([1, 3, 32])),
        "sweeps": draw(st.integers(0, 8)),
    }
    return made


def overlaps(made: Graph, result: Layout) -> int:
    """Pairs of boxes with common area; sizes of zero have none."""
    left, top = result.x.astype(float), result.y.astype(float)
    right, bottom = left + made.width, top + made.height
    tolerance = 1e-3
    across = np.minimum(right[:, None], right) - np.maximum(left[:, None], left) > tolerance
    along = np.minimum(bottom[:, None], bottom) - np.maximum(top[:, None], top) > tolerance
    return int(np.triu(across & along, 1).sum())


def passes(made: Graph, result: Layout) -> int:
    """Segments of edges that cut the inside of a box."""
    low_x, low_y = result.x + 1e-2, result.y + 1e-2
    high_x, high_y = result.x + made.width - 1e-2, result.y + made.height - 1e-2
    real = (low_x < high_x) & (low_y < high_y)
    low_x, low_y, high_x, high_y = low_x[real], low_y[real], high_x[real], high_y[real]
    cut = 0
    for edge in range(len(made.src)):
        line = result.line(edge).astype(float)[:, :, None]
        least, most = np.minimum(line[:-1], line[1:]), np.maximum(line[:-1], line[1:])
        across = (most[:, 0] > low_x) & (least[:, 0] < high_x)
        along = (most[:, 1] > low_y) & (least[:, 1] < high_y)
        cut += int((across & along).sum())
    return cut


def check_edges(made: Graph, result: Layout) -> None:
    assert result.edge_start[0] == 0
    assert result.edge_start[-1] == len(result.points)
    for edge, (src, dst) in enumerate(zip(made.src, made.dst, strict=True)):
        line = result.line(edge)
        assert len(line) >= 2
        steps = np.diff(line, axis=0)
        assert ((steps == 0).sum(axis=1) >= 1).all(), "a part is neither horizontal nor vertical"
        check_end(made, result, line[0], src, bottom=True)
        check_end(made, result, line[-1], dst, bottom=False)
        if src < dst and src >= 0:
            assert result.y[src] + made.height[src] <= result.y[dst] + 1e-3
            assert (steps[:, 1] >= -1e-3).all(), "a forward edge turns upwards"


def check_end(made: Graph, result: Layout, point: Floats, box: int, *, bottom: bool) -> None:
    if box < 0:
        assert point[1] == (0 if bottom else pytest.approx(result.height, abs=1e-3))
        return
    assert result.x[box] - 1e-3 <= point[0] <= result.x[box] + made.width[box] + 1e-3
    border = result.y[box] + (made.height[box] if bottom else 0)
    assert point[1] == pytest.approx(border, abs=1e-3)


def check_inside(made: Graph, result: Layout) -> None:
    if len(result.x):
        assert result.x.min() >= 0
        assert (result.x + made.width).max() <= result.width
        assert (result.y + made.height).max() <= result.height + 1e-3
    if len(result.points):
        assert result.points.min() >= 0
        assert result.points[:, 0].max() <= result.width
        assert result.points[:, 1].max() <= result.height + 1e-3


def horizontals_that_coincide(made: Graph, result: Layout) -> int:
    """Pairs of horizontal segments of different producers on one line with common length."""
    segments: dict[float, list[tuple[float, float, int]]] = {}
    for edge, src in enumerate(made.src):
        producer = int(src) if src >= 0 else -2 - edge
        if made.src[edge] == made.dst[edge] >= 0:
            continue
        line = result.line(edge)
        for (x0, y0), (x1, y1) in pairwise(line):
            if y0 == y1 and x0 != x1:
                segments.setdefault(float(y0), []).append((min(x0, x1), max(x0, x1), producer))
    bad = 0
    for row in segments.values():
        for i, (low, high, producer) in enumerate(row):
            bad += sum(p != producer and min(high, h) - max(low, lo) > 1e-3 for lo, h, p in row[:i])
    return bad


@settings(max_examples=400, deadline=None)
@given(graphs())
def test_layout_of_any_graph_is_sound(made: Graph) -> None:
    result = made.lay_out()
    assert overlaps(made, result) == 0
    assert passes(made, result) == 0
    assert horizontals_that_coincide(made, result) == 0
    check_edges(made, result)
    check_inside(made, result)


@settings(max_examples=50, deadline=None)
@given(graphs())
def test_layout_is_the_same_every_time(made: Graph) -> None:
    first, second = made.lay_out(), made.lay_out()
    assert first.x.tobytes() == second.x.tobytes()
    assert first.points.tobytes() == second.points.tobytes()


@settings(max_examples=300, deadline=None)
@given(graphs(), st.data())
def test_layout_with_any_anchors_is_sound(made: Graph, data: st.DataObject) -> None:
    place = st.sampled_from([np.nan, 0.0, 16.0, 40.5, 77.0, 200.0, 431.25])
    anchors = st.lists(place, min_size=len(made.width), max_size=len(made.width))
    result = made.lay_out(
        anchor_x=np.array(data.draw(anchors), np.float32), anchor_y=np.array(data.draw(anchors), np.float32)
    )
    assert overlaps(made, result) == 0
    assert passes(made, result) == 0
    check_edges(made, result)


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_boxes_anchored_where_they_stand_stay(made: Graph) -> None:
    before = made.lay_out()
    after = made.lay_out(anchor_x=before.x, anchor_y=before.y)
    assert after.x.tobytes() == before.x.tobytes()
    assert after.y.tobytes() == before.y.tobytes()


@pytest.mark.parametrize(
    "made",
    [blocks(40), random_graph(300, 420, 3, 12), random_graph(300, 360, 4)],
    ids=["blocks", "random, short edges", "random"],
)
def test_most_boxes_stay_when_some_are_replaced(made: Graph) -> None:
    random = np.random.default_rng(7)
    before = made.lay_out()
    boxes = len(made.width)
    replaced = random.choice(boxes, boxes // 20, replace=False)
    width = made.width.copy()
    width[replaced] = random.integers(30, 180, len(replaced))
    anchor_x, anchor_y = before.x.copy(), before.y.copy()
    anchor_x[replaced] = anchor_y[replaced] = np.nan
    changed = Graph(width, made.height, made.src, made.dst)
    after = changed.lay_out(anchor_x=anchor_x, anchor_y=anchor_y)
    kept = np.setdiff1d(np.arange(boxes), replaced)
    same = (after.x[kept] == before.x[kept]) & (after.y[kept] == before.y[kept])
    assert same.mean() >= 0.9
    assert overlaps(changed, after) == 0
    assert passes(changed, after) == 0
    check_edges(changed, after)


def test_box_that_grew_pushes_down_only_what_it_grew_into() -> None:
    made = graph(5, [(0, 1), (1, 2), (0, 3), (3, 4)])
    made.width[:], made.height[:] = 80, 30
    before = made.lay_out()
    made.height[1] += 20
    little = made.lay_out(anchor_x=before.x, anchor_y=before.y)
    assert little.y.tolist() == before.y.tolist()
    made.height[1] += 100
    much = made.lay_out(anchor_x=before.x, anchor_y=before.y)
    assert much.y[[0, 1, 3]].tolist() == before.y[[0, 1, 3]].tolist()
    assert much.y[2] == pytest.approx(much.y[1] + made.height[1] + 12)
    assert much.x.tolist() == before.x.tolist()


def test_main_chain_stays_straight_beside_residual_edges() -> None:
    edges = [(i, i + 1) for i in range(12)] + [(0, 4), (4, 8), (8, 12)]
    made = graph(13, edges)
    result = made.lay_out()
    centres = result.x + made.width / 2
    assert np.ptp(centres) <= 0.25
    assert all(len(result.line(edge)) == 2 for edge in range(12))
    # Out, across, down, across, in.
    assert all(len(result.line(edge)) == 6 for edge in range(12, 15))


def test_producer_stands_in_the_middle_of_four_branches() -> None:
    made = graph(6, [(0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (2, 5), (3, 5), (4, 5)])
    made.width[:] = 80
    result = made.lay_out()
    assert result.x[0] == result.x[5] == pytest.approx(result.x[1:5].mean(), abs=0.25)


@pytest.mark.parametrize(
    ("made", "limit"),
    [
        (graph(0, []), 100),
        (graph(1, [(-1, 0), (0, -1), (0, 0), (-1, -1)]), 1_000),
        (graph(10_001, [(0, i) for i in range(1, 10_001)]), 100_000),
        (graph(10_001, [(i, 10_000) for i in range(10_000)]), 2_000_000),
        (graph(10_000, []), 40_000),
        (graph(50_000, [(i, i + 1) for i in range(49_999)]), 1_000),
        (graph(3_000, [(i, i - 1) for i in range(1, 3_000)]), 50_000),
        (graph(2_000, [(-1, i) for i in range(2_000)] + [(i, -1) for i in range(2_000)]), 100_000),
    ],
    ids=["nothing", "one", "fan-out", "fan-in", "isolated", "chain", "back edges", "ports"],
)
def test_extreme_shapes_are_laid_out_within_a_width(made: Graph, limit: float) -> None:
    result = made.lay_out()
    assert np.isfinite(result.x).all()
    assert np.isfinite(result.points).all()
    assert result.width <= limit
    assert result.edge_start[-1] == len(result.points)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"width": [np.nan, 1]}, r"width .*index 0"),
        ({"width": [1, -1]}, r"width .*index 1"),
        ({"height": [1, np.inf]}, r"height .*index 1"),
        ({"width": [1e9, 1]}, "width"),
        ({"src": [2]}, "source"),
        ({"dst": [-2]}, "target"),
        ({"dst": [2**40]}, "int32"),
        ({"src": [0, 0]}, "columns"),
        ({"width": [1, 2, 3]}, "columns"),
        ({"src": [0.5]}, "column of int32"),
        ({"weight": [-1]}, "weight"),
        ({"anchor_x": [0, np.inf], "anchor_y": [0, 0]}, "anchor"),
        ({"anchor_x": [0, 0]}, "columns"),
        ({"gap_x": -1}, "gap_x"),
        ({"gap_y": np.nan}, "gap_y"),
        ({"margin": np.inf}, "margin"),
        ({"sweeps": -1}, "sweeps"),
        ({"max_span": 0}, "max_span"),
        ({"max_span": 10**12}, "cannot be laid out"),
    ],
)
def test_layout_rejects_arguments_out_of_range(change: dict[str, object], words: str) -> None:
    arguments: dict[str, object] = {"width": [80, 80], "height": [30, 30], "src": [0], "dst": [1]}
    with pytest.raises(DisplayError, match=f"(?s){words}"):
        layout(**{**arguments, **change})  # type: ignore[arg-type]


def golden_cases() -> dict[str, dict[str, list[float | None]]]:
    """Inputs whose results both the native engine and the one in the views must give."""
    mixed = random_graph(40, 60, 5, 8)
    more = np.array([(20, 3), (7, 7), (-1, 4), (-1, 30), (11, -1), (39, -1), (0, 35)], np.int32)
    mixed.src, mixed.dst = np.append(mixed.src, more[:, 0]), np.append(mixed.dst, more[:, 1])
    tangle = random_graph(120, 200, 6)
    before = mixed.lay_out()
    nowhere = np.full(40, np.nan, np.float32)
    cases: dict[str, dict[str, list[float | None]]] = {}
    for name, made, x, y in [
        ("blocks", blocks(3), nowhere[:19], nowhere[:19]),
        ("mixed", mixed, nowhere, nowhere),
        ("anchored", mixed, np.where(np.arange(40) % 9 == 4, nowhere, before.x), before.y),
        ("tangle", tangle, np.full(120, np.nan), np.full(120, np.nan)),
    ]:
        columns = {"width": made.width, "height": made.height, "src": made.src, "dst": made.dst}
        cases[name] = {key: column.tolist() for key, column in columns.items()}
        # JSON has no NaN; anchors are multiples of a quarter, exact in it.
        for key, anchor in (("anchor_x", x), ("anchor_y", y)):
            cases[name][key] = [None if np.isnan(value) else float(value) for value in anchor]
    return cases


def test_native_engine_gives_the_golden_layouts(request: pytest.FixtureRequest) -> None:
    results = {}
    for name, case in golden_cases().items():
        edges = {key: np.array(case[key], np.int32) for key in ("src", "dst")}
        sizes = {key: np.array(case[key], np.float32) for key in ("width", "height")}
        made = Graph(sizes["width"], sizes["height"], edges["src"], edges["dst"])
        anchors = {key: np.array(case[key], np.float32) for key in ("anchor_x", "anchor_y")}
        result = made.lay_out(**anchors)
        results[name] = {
            "input": case,
            "x": result.x.tolist(),
            "y": result.y.tolist(),
            "size": [result.width, result.height],
            "edge_start": result.edge_start.tolist(),
            "points": [round(value, 4) for value in result.points.ravel().tolist()],
        }
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(json.dumps(results) + "\n", encoding="utf-8")
    stored = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert stored.keys() == results.keys()
    for name, given_back in results.items():
        assert stored[name]["input"] == given_back["input"]
        for key in ("x", "y", "size", "edge_start", "points"):
            np.testing.assert_allclose(
                given_back[key], stored[name][key], rtol=0, atol=1e-3, err_msg=f"{name}: {key}"
            )
