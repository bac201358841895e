"""Python in the notebook's kernel, asked by the test beside the browser."""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zmq
from jupyter_client.session import Session


class KernelError(AssertionError):
    """Code that the test sent to the kernel failed there."""


class Kernel:
    """A second client of a running kernel.

    The browser's page is the first one: both see the same variables. Code runs between what the page asks
    for, silently, and leaves no trace in the notebook.

    Args:
        connection: The kernel's connection file.
    """

    def __init__(self, connection: Path) -> None:
        known = json.loads(connection.read_text(encoding="utf-8"))
        self._session = Session(key=known["key"].encode(), signature_scheme=known["signature_scheme"])
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.linger = 0
        self._socket.connect(f"{known['transport']}://{known['ip']}:{known['shell_port']}")

    def run(self, code: str, value: str | None = None, timeout: float = 120) -> Any:
        """Run code; the value of an expression after it, if one is given, as JSON carries it."""
        wanted = {} if value is None else {"value": f"__import__('json').dumps({value}, default=str)"}
        content = {
            "code": code,
            "silent": True,
            "store_history": False,
            "user_expressions": wanted,
            "allow_stdin": False,
            "stop_on_error": False,
        }
        sent = self._session.send(self._socket, "execute_request", content)
        reply = self._reply(sent["header"]["msg_id"], timeout)
        answers = reply.get("user_expressions", {}).values()
        for answer in (reply, *answers):
            if answer["status"] != "ok":
                raise KernelError("\n".join(answer.get("traceback", [str(answer)])))
        return next((json.loads(ast.literal_eval(one["data"]["text/plain"])) for one in answers), None)

    def value(self, expression: str, timeout: float = 120) -> Any:
        """The value of an expression."""
        return self.run("", expression, timeout)

    def until(
        self,
        expression: str,
        holds: Callable[[Any], bool] = bool,
        timeout: float = 15,
    ) -> Any:
        """Ask until the value of an expression is as it should be; the last value."""
        end = time.monotonic() + timeout
        while True:
            found = self.value(expression)
            if holds(found):
                return found
            assert time.monotonic() < end, f"`{expression}` stayed {found!r}"
            time.sleep(0.05)

    def _reply(self, parent: str, timeout: float) -> dict[str, Any]:
        end = time.monotonic() + timeout
        while (left := end - time.monotonic()) > 0:
            if not self._socket.poll(left * 1000):
                break
            _, parts = self._session.feed_identities(self._socket.recv_multipart())
            message = self._session.deserialize(parts)
            if message["parent_header"].get("msg_id") == parent:
                content: dict[str, Any] = message["content"]
                return content
        raise KernelError(f"the kernel did not answer within {timeout:.0f} s")

    def close(self) -> None:
        """Let go of the kernel; it runs on."""
        self._socket.close()
        self._context.term()
