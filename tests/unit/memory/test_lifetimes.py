"""Lifetimes from instructions and loops."""

from workbench.memory import lifetimes


def test_inputs_live_from_the_start_and_results_to_the_end() -> None:
    found = lifetimes([["x", "a"], ["a", "y"]], at_start=["x"], at_end=["y"])
    assert found == {"x": (0, 1), "a": (1, 2), "y": (2, 3)}


def test_an_unused_input_lives_only_when_it_is_given() -> None:
    assert lifetimes([["a"]], at_start=["x"])["x"] == (0, 0)


def test_persistent_memory_lives_always() -> None:
    assert lifetimes([["s"], ["a"], ["a"]], always=["s"])["s"] == (0, 4)


def test_what_enters_a_loop_lives_until_it_ends() -> None:
    # Instruction 0 makes `a`, the loop is 1 to 3 and reads `a` in its first instruction.
    found = lifetimes([["a"], ["a", "t"], ["t", "u"], ["u"], ["z"]], loops=[(1, 3)])
    assert found["a"] == (1, 4)
    assert found["t"] == (2, 3)


def test_what_leaves_a_loop_lives_from_its_start() -> None:
    # `y` is filled piece by piece at the end of each turn: `t` must not lie in it on the next turn.
    found = lifetimes([["t"], ["t", "y"], ["y"]], loops=[(0, 1)])
    assert found["y"] == (1, 3)


def test_nested_loops_extend_to_the_outer_end() -> None:
    uses = [["a"], ["b"], ["a", "b"], ["c"], ["d"]]
    found = lifetimes(uses, loops=[(2, 2), (1, 3)])
    assert found["a"] == (1, 4)
    assert found["b"] == (2, 3)
