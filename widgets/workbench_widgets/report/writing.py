"""A report: one HTML file with all views of a subject, that needs no kernel, no server and no network.

The page holds the script and the style of the views, and for each document a block

    <script type="application/octet-stream" data-document="KIND:KEY">base64 of the packed document</script>

or, where it can't be made, `type="application/json"` with the error. Weights are not in it. A policy in the
page (CSP) lets only its own script run and forbids every connection.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import logging
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from workbench.display import StaticViews
from workbench.lowering import Run
from workbench_widgets.context import Context
from workbench_widgets.pack import pack
from workbench_widgets.panel.document import recipe_document, versions
from workbench_widgets.view import View, all_views, document
from workbench_widgets.widget import bundle, failure

__all__ = ["page", "write"]

# zlib's best: a report is written once and kept.
_LEVEL = 9
_LOG = logging.getLogger("workbench_widgets")


def write(subject: Any, *, run: Run | None = None) -> str:
    """A report.

    Args:
        subject: A lowering, one of its stages, a run, an opened program or a comparison.
        run: A run of the subject whose measurements are shown.

    Returns:
        The text of an HTML file.

    Raises:
        WorkbenchError: There is no view of this object, or the views have not been built.
    """
    context = Context(subject, run=run)
    try:
        return page(context)
    finally:
        context.close()


def page(context: Context) -> str:
    """The report of what a widget is about; see `write`."""
    view = all_views()["compare" if context.comparison is not None else "panel"]
    about = context.about(view.name)
    script, style = bundle("report", "js"), bundle("report", "css")
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="generator" content="lowering-workbench">',
        f"<title>{html.escape(about.title)}</title>",
        f"<style>{style}</style></head>",
        '<body class="wb-page wb-root"><main>',
        _head(about.title),
        '<div id="wb-report"></div>',
        f"<noscript><p>The views need JavaScript; these are still pictures of them.</p>{_pictures(context)}"
        "</noscript>",
        *_recipe(context),
        "</main>",
        f'<script type="application/json" id="wb-about">{_json(dataclasses.asdict(about))}</script>',
        *_blocks(context, view),
        f'<script type="module">{script}</script>',
        "</body></html>",
    ]
    return "\n".join(parts)


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # The layout engine is WebAssembly; elements are placed by their style attributes.
    return (
        f"default-src 'none'; script-src 'sha256-{digest}' 'wasm-unsafe-eval'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _head(title: str) -> str:
    made = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    return (
        f'<div class="wb-page-head"><div><h1>{html.escape(title)}</h1>'
        f'<p class="wb-muted">Made {made} with {html.escape(known)}</p></div><div id="wb-theme"></div></div>'
    )


def _recipe(context: Context) -> Iterator[str]:
    if context.lowering is None:
        return
    recipe = recipe_document(context, "")
    text = html.escape(recipe.problem)
    for title, code in (("Python", recipe.python), ("JSON", recipe.json)):
        if code:
            text += f"<h4>{title}</h4><pre>{html.escape(code)}</pre>"
    yield f"<details><summary>Recipe</summary>{text}</details>"


def _json(data: Any) -> str:
    # Inside a script element only `<` could end it or begin a comment.
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _blocks(context: Context, view: View) -> Iterator[str]:
    wanted = dict.fromkeys([*view.initial(context), *view.report(context)])
    for kind, key in wanted:
        name = html.escape(f"{kind}:{key}", quote=True)
        try:
            data = pack(document(context, kind, key), level=_LEVEL)
        except Exception as error:  # the view in the page shows it; the others are still of use
            _LOG.warning("the report goes without %s: %s", name, error, exc_info=True)
            text = _json(dataclasses.asdict(failure(error)))
            yield f'<script type="application/json" data-document="{name}">{text}</script>'
        else:
            text = base64.b64encode(data).decode()
            yield f'<script type="application/octet-stream" data-document="{name}">{text}</script>'


def _pictures(context: Context) -> str:
    parts = []
    for shown in _shown(context):
        try:
            text = StaticViews().mimebundle(shown)["text/html"]
        except Exception as error:
            text = f"<pre>{html.escape(str(error))}</pre>"
        parts.append(f'<section class="wb-static">{text}</section>')
    return "".join(parts)


def _shown(context: Context) -> Iterator[Any]:
    if context.comparison is not None:
        yield context.comparison
        return
    if context.opened is not None:
        yield context.opened
    yield from (context.stage(name) for name in context.stages if context.has_stage(name))
    if context.run is not None:
        yield context.run
