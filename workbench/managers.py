"""Several methods on their way from exported programs to one file: the names that ExecuTorch users know.

`to_edge` and `to_edge_transform_and_lower` make an `EdgeProgramManager`; its `to_backend` and `transform`
make new managers, `to_executorch` an `ExecutorchProgramManager`, which writes the file. A manager never
changes: each step works on a copy of the graphs and shares the weights.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram

from workbench.backends import MethodProgramsPartitionerSpec, Partitioner, to_backend
from workbench.backends.debug import ensure_debug_handles
from workbench.backends.programs import copy_program
from workbench.edge.config import EdgeCompileConfig
from workbench.edge.invariants import verify
from workbench.emit import EmitResult, ExecutorchBackendConfig, emit
from workbench.errors import LoweringError, PartitionError
from workbench.passes.base import PassResult
from workbench.passes.foreign import AnyPass, apply
from workbench.passes.preserve import check_preserved, preserved_operators
from workbench.passes.to_edge import to_edge_program
from workbench.serialize import SerializedProgram, write_named_data, write_program

__all__ = [
    "EdgeProgramManager",
    "ExecutorchProgramManager",
    "to_edge",
    "to_edge_transform_and_lower",
]

Programs = ExportedProgram | dict[str, ExportedProgram]
Passes = Sequence[AnyPass] | Mapping[str, Sequence[AnyPass]]
Partitioners = Partitioner | Sequence[Partitioner] | Mapping[str, Partitioner | Sequence[Partitioner]]


def to_edge(
    programs: Programs,
    constant_methods: Mapping[str, Any] | None = None,
    compile_config: EdgeCompileConfig | None = None,
) -> EdgeProgramManager:
    """Bring exported programs to the edge dialect.

    Args:
        programs: One program, then called "forward", or several by method name.
        constant_methods: Methods that return a constant: a number, a string, a tensor, or a tuple of them.
        compile_config: Options.

    Raises:
        LoweringError: A program cannot be decomposed, or a pass fails.
        VerificationError: A program breaks a rule of the edge dialect.
    """
    config = compile_config or EdgeCompileConfig()
    return _edge_manager(_by_method(programs), constant_methods, config, {})


def to_edge_transform_and_lower(
    programs: Programs,
    transform_passes: Passes | None = None,
    partitioner: Partitioners | None = None,
    constant_methods: Mapping[str, Any] | None = None,
    compile_config: EdgeCompileConfig | None = None,
) -> EdgeProgramManager:
    """Bring programs to the edge dialect, run passes, and lower what the partitioners take.

    Unlike `to_edge` and `to_backend` in turn, this keeps the operators whole that a partitioner asks for with
    `ops_to_not_decompose`. Where it asks for an operator and then does not take it, that is an error here.

    Args:
        programs: One program, then called "forward", or several by method name.
        transform_passes: Passes for all methods, or by method.
        partitioner: One, or a list that is run in order, for all methods or by method.
        constant_methods: As of `to_edge`.
        compile_config: Options.

    Raises:
        LoweringError: A program cannot be decomposed, a pass fails, or a preserved operator was not
            delegated.
        PartitionError: A partition is illegal, or a backend fails.
        VerificationError: A program breaks a rule of the edge dialect.
    """
    config = compile_config or EdgeCompileConfig()
    exported = _by_method(programs)
    chosen = _partitioners(partitioner, exported)
    manager = _edge_manager(exported, constant_methods, config, chosen)
    if transform_passes is not None:
        manager = manager.transform(transform_passes)
    for turn in range(max((len(items) for items in chosen.values()), default=0)):
        manager = manager.to_backend(
            {name: items[turn] for name, items in chosen.items() if turn < len(items)}
        )
    for name in chosen:
        check_preserved(name, manager.exported_program(name), manager._preserved - set(config.preserve_ops))
    return manager


class EdgeProgramManager:
    """Methods in the edge dialect.

    Made by `to_edge`; not by hand.

    Attributes:
        compile_config: The options that the programs were made with.
        pass_results: By method, what each pass on the way here did.
    """

    def __init__(
        self,
        edge_programs: Programs,
        constant_methods: Mapping[str, Any] | None = None,
        compile_config: EdgeCompileConfig | None = None,
        *,
        preserved: frozenset[OpOverload] = frozenset(),
        stage: str = "edge",
        pass_results: Mapping[str, tuple[PassResult, ...]] | None = None,
    ) -> None:
        self.compile_config = compile_config or EdgeCompileConfig()
        self.pass_results = dict(pass_results or {})
        self._edge_programs = dict(_by_method(edge_programs))
        self._config_methods = dict(constant_methods or {})
        self._preserved = preserved
        self._stage = stage
        clash = set(self._edge_programs) & set(self._config_methods)
        if clash:
            raise LoweringError(
                f"`{min(clash)}` is both a method and a constant method", hint="give one of them another name"
            )
        if self.compile_config._check_ir_validity:
            for program in self._edge_programs.values():
                self._verify(program)

    @property
    def methods(self) -> set[str]:
        """The names of the methods."""
        return set(self._edge_programs)

    @property
    def config_methods(self) -> set[str]:
        """The names of the constant methods."""
        return set(self._config_methods)

    def exported_program(self, method_name: str = "forward") -> ExportedProgram:
        """The program of a method.

        Raises:
            LoweringError: There is no such method.
        """
        return _method(self._edge_programs, method_name)

    def transform(
        self, passes: Passes, compile_config: EdgeCompileConfig | None = None
    ) -> EdgeProgramManager:
        """Run passes on copies of the programs, and verify the results.

        Args:
            passes: Passes for all methods, or by method (the others stay as they are). A pass is one of
                `workbench.passes`, or a callable from a graph module to a torch `PassResult`, a graph module,
                or None for a change in place.
            compile_config: Options of the new manager; by default those of this one.

        Raises:
            LoweringError: A pass fails; the error names it.
            VerificationError: The passes leave a graph that breaks a rule.
        """
        programs, results = {}, dict(self.pass_results)
        for name, program in self._edge_programs.items():
            chosen = passes.get(name, ()) if isinstance(passes, Mapping) else passes
            if not chosen:
                programs[name] = program
                continue
            programs[name], done = apply(copy_program(program), chosen)
            ensure_debug_handles(programs[name])
            results[name] = (*results.get(name, ()), *done)
        return self._next(programs, compile_config or self.compile_config, self._stage, results)

    def to_backend(
        self, partitioner: Partitioner | Mapping[str, Partitioner] | MethodProgramsPartitionerSpec
    ) -> EdgeProgramManager:
        """Lower what partitioners take.

        Args:
            partitioner: One for all methods, by method (the others stay as they are), or ExecuTorch's
                specification of programs and partitioners, whose programs then take the place of this
                manager's.

        Raises:
            PartitionError: A partition is illegal, or a backend fails.
        """
        if isinstance(partitioner, MethodProgramsPartitionerSpec):
            spec = partitioner
        else:
            chosen = (
                partitioner
                if isinstance(partitioner, Mapping)
                else dict.fromkeys(self._edge_programs, partitioner)
            )
            spec = MethodProgramsPartitionerSpec(self._edge_programs, dict(chosen))
        return self._next(to_backend(spec), self.compile_config, "lowered", self.pass_results)

    def to_executorch(self, config: ExecutorchBackendConfig | None = None) -> ExecutorchProgramManager:
        """Plan the memory and emit the program.

        Args:
            config: Options.

        Raises:
            MissingKernelError: An operator that is left has no kernel in the target runtime.
            MemoryPlanError: No plan within the limits exists.
            EmitError: A graph cannot be written as instructions.
        """
        config = config or ExecutorchBackendConfig()
        programs = {name: copy_program(program) for name, program in self._edge_programs.items()}
        result = emit(programs, config, constant_methods=self._config_methods)
        return ExecutorchProgramManager(programs, self._config_methods, config, result)

    def _verify(self, program: ExportedProgram) -> None:
        config = self.compile_config
        verify(
            program,
            self._stage,
            allowed={*config._core_aten_ops_exception_list, *config.preserve_ops, *self._preserved},
            dim_order=not config._skip_dim_order,
        )

    def _next(
        self,
        programs: Mapping[str, ExportedProgram],
        config: EdgeCompileConfig,
        stage: str,
        results: Mapping[str, tuple[PassResult, ...]],
    ) -> EdgeProgramManager:
        return EdgeProgramManager(
            dict(programs),
            self._config_methods,
            config,
            preserved=self._preserved,
            stage=stage,
            pass_results=results,
        )


class ExecutorchProgramManager:
    """A planned and emitted program, ready to be written.

    Made by `EdgeProgramManager.to_executorch`; not by hand.
    """

    def __init__(
        self,
        execution_programs: Mapping[str, ExportedProgram],
        config_methods: Mapping[str, Any],
        backend_config: ExecutorchBackendConfig,
        emitted: EmitResult,
    ) -> None:
        self.backend_config = backend_config
        self._execution_programs = dict(execution_programs)
        self._config_methods = dict(config_methods)
        self._emitted = emitted
        self._serialized: SerializedProgram | None = None

    @property
    def methods(self) -> set[str]:
        """The names of the methods."""
        return set(self._execution_programs)

    @property
    def config_methods(self) -> set[str]:
        """The names of the constant methods."""
        return set(self._config_methods)

    def exported_program(self, method_name: str = "forward") -> ExportedProgram:
        """The planned program of a method.

        Raises:
            LoweringError: There is no such method.
        """
        return _method(self._execution_programs, method_name)

    @property
    def executorch_program(self) -> Any:
        """The program in memory, as it is written (`workbench.emit.ir.Program`)."""
        return self._emitted.program

    @property
    def debug_handle_map(self) -> Any:
        """By method and instruction the debug handles of the nodes that it stands for."""
        return self._emitted.debug_handle_map

    @property
    def delegate_map(self) -> Any:
        """By method and instruction what a delegate says about its inside."""
        return self._emitted.delegate_map

    @property
    def instruction_id_to_num_outs_map(self) -> Any:
        """By method and instruction how many results it has."""
        return self._emitted.instruction_id_to_num_outs

    @property
    def memory_report(self) -> Any:
        """Offsets, sizes, lifetimes and peak of the memory plan."""
        return self._emitted.memory_report

    @property
    def serialized(self) -> SerializedProgram:
        """The program as flatbuffer and segments, written on first use."""
        if self._serialized is None:
            self._serialized = write_program(self._emitted.program)
        return self._serialized

    @property
    def buffer(self) -> bytes:
        """The `.pte` file as one string of bytes; `write_to_file` needs less memory."""
        return self.serialized.buffer

    def write_to_file(self, open_file: io.BufferedIOBase) -> None:
        """Write the `.pte` file; segments go from where they lie to the file."""
        self.serialized.write_to_file(open_file)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the `.pte` file to a path.

        Raises:
            ValueError: The path does not end in `.pte`.
        """
        if not os.fspath(path).endswith(".pte"):
            raise ValueError(f"Path {os.fspath(path)} does not end with .pte")
        with open(path, "wb") as file:
            self.write_to_file(file)

    def write_tensor_data_to_file(self, outdir: str | os.PathLike[str]) -> None:
        """Write the `.ptd` files of external constants, one per tag, into a folder."""
        for name, data in self._emitted.program.external_data.items():
            target = os.path.join(outdir, name if name.endswith(".ptd") else f"{name}.ptd")
            with open(target, "wb") as file:
                write_named_data(data).write_to_file(file)

    def dump_executorch_program(self, verbose: bool = False, out: TextIO | None = None) -> None:
        """Print the program: one line per value and instruction; `verbose` with all fields."""
        text = self._emitted.program.format(verbose=verbose)
        print(text, file=out)


def _edge_manager(
    programs: dict[str, ExportedProgram],
    constant_methods: Mapping[str, Any] | None,
    config: EdgeCompileConfig,
    partitioners: Mapping[str, Sequence[Partitioner]],
) -> EdgeProgramManager:
    cache: dict[Any, torch.Tensor] = {}
    edge, results = {}, {}
    preserved: set[OpOverload] = set()
    for name, program in programs.items():
        everywhere, somewhere = preserved_operators(program, partitioners.get(name, ()))
        preserved.update(everywhere, somewhere)
        edge[name], results[name] = to_edge_program(
            program, config, preserve=everywhere, preserve_at=somewhere, cache=cache
        )
        # Set once here, they stay the same in all later stages: by them a trace finds its way back.
        ensure_debug_handles(edge[name])
    return EdgeProgramManager(
        edge, constant_methods, config, preserved=frozenset(preserved), pass_results=results
    )


def _by_method(programs: Programs) -> dict[str, ExportedProgram]:
    named = programs if isinstance(programs, dict) else {"forward": programs}
    for name, program in named.items():
        if not isinstance(program, ExportedProgram):
            raise LoweringError(
                f"method `{name}` is not an exported program",
                expected="torch.export.ExportedProgram",
                found=type(program).__name__,
                hint="capture the model with workbench.export or torch.export.export first",
            )
    return named


def _partitioners(
    partitioner: Partitioners | None, programs: Mapping[str, ExportedProgram]
) -> dict[str, list[Partitioner]]:
    if partitioner is None:
        return {}
    if isinstance(partitioner, Mapping):
        unknown = sorted(set(partitioner) - set(programs))
        if unknown:
            raise PartitionError(
                f"there is a partitioner for `{unknown[0]}`, but no such method", expected=", ".join(programs)
            )
        return {name: _listed(item) for name, item in partitioner.items()}
    return {name: _listed(partitioner) for name in programs}


def _listed(item: Partitioner | Sequence[Partitioner]) -> list[Partitioner]:
    return list(item) if isinstance(item, Sequence) else [item]


def _method(programs: Mapping[str, ExportedProgram], name: str) -> ExportedProgram:
    if name not in programs:
        raise LoweringError(f"there is no method `{name}`", expected=", ".join(sorted(programs)), found=name)
    return programs[name]
