"""The report of a plan."""

from workbench.memory import Buffer, MemoryReport, plan


def report() -> MemoryReport:
    items = [
        Buffer("x", 64, 0, 1, handles=frozenset({1})),
        Buffer("a", 100, 1, 2, handles=frozenset({2, 3})),
        Buffer("y", 32, 2, 3),
    ]
    return MemoryReport({"forward": plan(items, arena_limits={1: 4096})[1]})


def test_the_report_names_what_lives_at_the_peak() -> None:
    arena = report()["forward"].arenas[0]
    assert arena.lower_bound == 64 + 112
    assert arena.peak_moment == 1
    assert {item.name for item in arena.at_peak} == {"x", "a"}
    assert arena.limit == 4096
    assert arena.fragmentation == 0.0
    assert arena.total == 196


def test_the_table_has_a_row_per_tensor_with_its_sources() -> None:
    table = report().table()
    assert list(table["tensor"].sort_values()) == ["a", "x", "y"]
    row = table.set_index("tensor").loc["a"]
    assert tuple(row["handles"]) == (2, 3)
    assert (row["first"], row["last"], row["bytes"]) == (1, 2, 100)


def test_text_and_html_show_sizes_of_arenas() -> None:
    text, page = repr(report()), report()._repr_html_()
    assert "176" in text
    assert "lower bound" in text
    assert "<table>" in page
    assert "176" in page
