"""Methods in the edge dialect: looked at, changed by passes, delegated, and emitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch._ops import OpOverload
from torch.export import ExportedProgram

from workbench.backends import MethodProgramsPartitionerSpec, Partitioner, to_backend
from workbench.backends.debug import ensure_debug_handles
from workbench.backends.programs import copy_program
from workbench.edge.config import EdgeCompileConfig
from workbench.edge.invariants import verify
from workbench.emit import ExecutorchBackendConfig, emit
from workbench.errors import LoweringError
from workbench.managers.executorch import ExecutorchProgramManager, Recorded
from workbench.managers.methods import Programs, by_method, method
from workbench.passes.base import PassResult
from workbench.passes.foreign import AnyPass, apply

__all__ = ["EdgeProgramManager", "Passes"]

Passes = Sequence[AnyPass] | Mapping[str, Sequence[AnyPass]] | AnyPass


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
        recorded: Recorded | None = None,
    ) -> None:
        self.compile_config = compile_config or EdgeCompileConfig()
        self.pass_results = dict(pass_results or {})
        self._edge_programs = dict(by_method(edge_programs))
        self._config_methods = dict(constant_methods or {})
        self._preserved = preserved
        self._stage = stage
        self._recorded = recorded
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
        return method(self._edge_programs, method_name)

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
            chosen = _for_method(passes, name)
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
        return ExecutorchProgramManager(programs, self._config_methods, config, result, self._recorded)

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
            recorded=self._recorded,
        )


def _for_method(passes: Passes, name: str) -> Sequence[AnyPass]:
    if isinstance(passes, Mapping):
        return passes.get(name, ())
    return passes if isinstance(passes, Sequence) else (passes,)
