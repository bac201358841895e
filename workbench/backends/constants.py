"""Which delegate owns which constant: tags on parameters, buffers and lifted constants."""

from __future__ import annotations

from torch.export import ExportedProgram

from workbench.backends.base import TAG_KEY
from workbench.backends.graphs import constant_inputs, mutated_buffers, tag_of

__all__ = ["tag_constant_data", "tag_mutated_buffer"]


def tag_constant_data(edge_program: ExportedProgram) -> None:
    """Give each constant that a tagged node uses to that node's delegate.

    Call it after all operators are tagged. A constant that several tags use goes into each of them (the
    tensor is shared until a backend writes it into its blob); one that untagged nodes use too also stays
    outside. Set `node.meta["no_copy"] = True` to refuse that. Buffers that the program writes are left alone.

    Args:
        edge_program: The program whose operators are tagged.
    """
    writers = mutated_buffers(edge_program)
    constants = constant_inputs(edge_program)
    for node in edge_program.graph.nodes:
        if node.op != "placeholder":
            break
        if node.name in constants and node.name not in writers:
            tags = {tag for user in node.users if (tag := tag_of(user)) is not None}
            if tags:
                node.meta[TAG_KEY] = min(tags)


def tag_mutated_buffer(edge_program: ExportedProgram) -> None:
    """Give each buffer that the program writes to the delegate that holds all of its uses.

    Such a delegate keeps the state itself from one execution to the next. A buffer with uses elsewhere stays
    outside: its value goes into the delegate, and the new value comes out. Call it after all operators are
        tagged.

    Args:
        edge_program: The program whose operators are tagged.
    """
    writers = mutated_buffers(edge_program)
    if not writers:
        return
    by_name = {node.name: node for node in edge_program.graph.nodes}
    for name, writer in writers.items():
        node = by_name[name]
        users = [user for user in (*node.users, by_name[writer]) if user.op != "output"]
        tags = {tag_of(user) for user in users}
        if len(tags) == 1 and (tag := tags.pop()) is not None:
            node.meta[TAG_KEY] = tag
