"""A real client speaks to `edgewise lsp` over its pipes, as an editor does."""

import asyncio
import sys

import pytest
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

URI = "file:///tmp/orders.siddhi"
APP = """define stream Orders (symbol string, price double);
from Orders#window.length(3)
select symbol, avg(price) as mean insert into Means;
from Means[mean > 3.0] select symbol insert into Large;
"""


class Editor:
    def __init__(self):
        self.client = LanguageClient("test", "1")
        self.told = asyncio.Queue()

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def note(params):
            self.told.put_nowait(params.diagnostics)

    async def __aenter__(self):
        await self.client.start_io(sys.executable, "-m", "edgewise", "lsp")
        await self.client.initialize_async(lsp.InitializeParams(lsp.ClientCapabilities()))
        return self

    async def __aexit__(self, *_):
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()

    async def write(self, text, version=1):
        if version == 1:
            item = lsp.TextDocumentItem(URI, "siddhi", version, text)
            self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        else:
            self.client.text_document_did_change(
                lsp.DidChangeTextDocumentParams(
                    lsp.VersionedTextDocumentIdentifier(version, URI),
                    [lsp.TextDocumentContentChangeWholeDocument(text)],
                )
            )
        return await asyncio.wait_for(self.told.get(), 30)

    def place(self, text, word, last=False):
        at = text.rindex(word) if last else text.index(word)
        line = text.count("\n", 0, at)
        column = len(text[text.rfind("\n", 0, at) + 1 : at].encode("utf-16-le")) // 2
        return {
            "text_document": lsp.TextDocumentIdentifier(URI),
            "position": lsp.Position(line, column),
        }


def test_an_editor_is_told_what_check_tells_and_gets_answers():
    async def talk():
        async with Editor() as editor:
            client = editor.client
            assert not await editor.write(APP)
            hover = await client.text_document_hover_async(
                lsp.HoverParams(**editor.place(APP, "mean >"))
            )
            assert "Means.mean double" in hover.contents.value
            place = await client.text_document_definition_async(
                lsp.DefinitionParams(**editor.place(APP, "price)", last=True))
            )
            assert (place.range.start.line, place.range.start.character) == (0, 37)
            outline = await client.text_document_document_symbol_async(
                lsp.DocumentSymbolParams(lsp.TextDocumentIdentifier(URI))
            )
            assert [s.name for s in outline] == ["Orders", "Means", "Large"]
            edits = await client.text_document_formatting_async(
                lsp.DocumentFormattingParams(
                    lsp.TextDocumentIdentifier(URI), lsp.FormattingOptions(2, True)
                )
            )
            assert edits[0].new_text.startswith("define stream Orders")
            broken = APP.replace("mean >", "'😀' == symbol and meen >")
            (problem,) = await editor.write(broken, 2)
            assert "there is no attribute 'meen'" in problem.message
            assert problem.range.start == editor.place(broken, "meen")["position"]
            assert problem.severity is lsp.DiagnosticSeverity.Error
            half = f"{APP}from Means select "
            await editor.write(half, 3)
            answers = await client.text_document_completion_async(
                lsp.CompletionParams(lsp.TextDocumentIdentifier(URI), lsp.Position(4, 18))
            )
            assert {"mean", "symbol", "avg", "str:length"} <= {a.label for a in answers}

    asyncio.run(talk())


@pytest.mark.parametrize("text", ["", ";;;", "from", "@", "define stream", "\0", "from a#", "'"])
def test_a_text_that_is_no_app_is_answered(text):
    from edgewise.lsp.text_model import TextModel

    model = TextModel(text)
    for offset in range(len(text) + 1):
        model.describe(offset), model.define(offset), model.complete(offset)
