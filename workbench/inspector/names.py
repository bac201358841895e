"""Names of events, as ExecuTorch's runtime gives them and its users' scripts look for them."""

from __future__ import annotations

__all__ = [
    "CONTROL_EVENTS",
    "DELEGATE_EVENT",
    "EXECUTE_EVENT",
    "FRAMEWORK_EVENTS",
    "KERNEL_PREFIX",
    "OVERHEAD_EVENT",
]

EXECUTE_EVENT = "Method::execute"
FRAMEWORK_EVENTS = frozenset({"Method::init", "Program::load_method", EXECUTE_EVENT})
# Before the name of the operator.
KERNEL_PREFIX = "native_call_"
# The call of a delegate, whatever its backend.
DELEGATE_EVENT = "DELEGATE_CALL"
# What ExecuTorch logs beside each kernel: the kernel with the overhead of its call.
OVERHEAD_EVENT = "OPERATOR_CALL"
# Instructions that call nothing: the executor's names and ExecuTorch's.
CONTROL_EVENTS = {"move": "MOVE_CALL", "jump_false": "JF_CALL", "free": "FREE_CALL"}
