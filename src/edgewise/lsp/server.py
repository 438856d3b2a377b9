"""Serve the language server protocol to an editor over stdin and stdout: `edgewise lsp`.

A thin shell: pygls keeps the texts and the protocol, `load_text` finds what `edgewise check`
finds, `text_model` answers the rest. A text is compiled when it is opened and after each change;
that takes milliseconds, because an app is small. Used by the command line.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlparse

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument
from pygls.workspace.position_codec import ServerTextPosition, ServerTextRange

from edgewise import __version__
from edgewise.errors import AppError, EdgewiseError, Problem
from edgewise.lang import format_app
from edgewise.lang.source import At
from edgewise.lsp.text_model import TextModel
from edgewise.node.app.load import load_text
from edgewise.plan.nodes import App

DOCUMENTS_MAX = 256  # whose last plan is kept
TEXT_MAX = 1_000_000  # characters of an app that is analysed while it is written
_SYMBOLS = {
    "stream": lsp.SymbolKind.Event,
    "table": lsp.SymbolKind.Struct,
    "window": lsp.SymbolKind.Array,
    "trigger": lsp.SymbolKind.Event,
    "function": lsp.SymbolKind.Function,
    "aggregation": lsp.SymbolKind.Class,
}
_COMPLETIONS = {
    "attribute": lsp.CompletionItemKind.Field,
    "function": lsp.CompletionItemKind.Function,
    "window": lsp.CompletionItemKind.Method,
    "annotation": lsp.CompletionItemKind.Property,
    "keyword": lsp.CompletionItemKind.Keyword,
}


class AppServer(LanguageServer):
    """Keeps of each open text the last plan that it compiled to."""

    def __init__(self, functions: Iterable[str]) -> None:
        super().__init__("edgewise", __version__)
        self.functions = tuple(functions)
        self.plans: dict[str, App] = {}

    def model(self, uri: str) -> tuple[TextDocument, TextModel]:
        document = self.workspace.get_text_document(uri)
        return document, TextModel(document.source[:TEXT_MAX], self.plans.get(uri))

    def check(self, uri: str) -> None:
        """Compile the text and tell the editor what is wrong with it."""
        document = self.workspace.get_text_document(uri)
        path = Path(unquote(urlparse(uri).path))
        problems: tuple[Problem, ...] = ()
        if len(document.source) <= TEXT_MAX:
            try:
                loaded = load_text(document.source, path, self.functions)
                self._keep(uri, loaded.app)
                problems = loaded.warnings
            except AppError as error:
                problems = error.problems
            except EdgewiseError as error:  # an extension that cannot be loaded
                self.window_log_message(lsp.LogMessageParams(lsp.MessageType.Error, str(error)))
        found = [_show_problem(document, problem) for problem in problems]
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri, found, document.version)
        )

    def forget(self, uri: str) -> None:
        self.plans.pop(uri, None)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def _keep(self, uri: str, app: App) -> None:
        self.plans.pop(uri, None)
        self.plans[uri] = app
        if len(self.plans) > DOCUMENTS_MAX:
            del self.plans[next(iter(self.plans))]


def build_server(functions: Iterable[str] = ()) -> AppServer:
    server = AppServer(functions)
    _add_checks(server)
    _add_answers(server)
    return server


def _add_checks(server: AppServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def open_text(ls: AppServer, params: lsp.DidOpenTextDocumentParams) -> None:
        ls.check(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def change_text(ls: AppServer, params: lsp.DidChangeTextDocumentParams) -> None:
        ls.check(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def close_text(ls: AppServer, params: lsp.DidCloseTextDocumentParams) -> None:
        ls.forget(params.text_document.uri)


def _add_answers(server: AppServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(ls: AppServer, params: lsp.HoverParams) -> lsp.Hover | None:
        document, model = ls.model(params.text_document.uri)
        text = model.describe(document.offset_at_position(params.position))
        if not text:
            return None
        shown = lsp.MarkupContent(lsp.MarkupKind.Markdown, f"```siddhi\n{text}\n```")
        return lsp.Hover(shown)

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=list(".:#@"))
    )
    def complete(ls: AppServer, params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        document, model = ls.model(params.text_document.uri)
        return [
            lsp.CompletionItem(
                found.label,
                kind=_COMPLETIONS.get(found.kind, lsp.CompletionItemKind.Variable),
                detail=found.detail,
            )
            for found in model.complete(document.offset_at_position(params.position))
        ]

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def define(ls: AppServer, params: lsp.DefinitionParams) -> lsp.Location | None:
        document, model = ls.model(params.text_document.uri)
        at = model.define(document.offset_at_position(params.position))
        return None if at is None else lsp.Location(document.uri, _range(document, at))

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def outline(ls: AppServer, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        document, model = ls.model(params.text_document.uri)
        found = []
        for symbol in model.outline():
            place = _range(document, symbol.at)
            kind = _SYMBOLS[symbol.kind]
            found.append(lsp.DocumentSymbol(symbol.name, kind, place, place, symbol.text))
        return found

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def format_text(ls: AppServer, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        document = ls.workspace.get_text_document(params.text_document.uri)
        try:
            text = format_app(document.source)
        except AppError:  # it is told as a diagnostic; a broken text is left as it is
            return []
        whole = _range(document, (0, len(document.source)))
        return [lsp.TextEdit(whole, text)] if text != document.source else []


def _show_problem(document: TextDocument, problem: Problem) -> lsp.Diagnostic:
    span = problem.span
    start = ServerTextPosition(span.line - 1, span.column - 1)
    end = ServerTextPosition(span.line - 1, span.column - 1 + span.length)
    severity = lsp.DiagnosticSeverity
    return lsp.Diagnostic(
        document.range_to_client_units(ServerTextRange(start, end)),
        f"{problem.message}\n{problem.hint}".strip(),
        severity.Error if problem.severity == "error" else severity.Warning,
        source="edgewise",
    )


def _range(document: TextDocument, at: At) -> lsp.Range:
    return lsp.Range(*map(document.client_position_at_offset, at))


def serve(functions: Iterable[str] = ()) -> None:
    """Answer on stdin and stdout until the editor ends the session."""
    build_server(functions).start_io()
