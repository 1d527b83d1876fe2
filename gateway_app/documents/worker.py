"""Reads one document from its standard input, within limits, and writes its text as JSON."""

import json
import logging
import resource
import sys
from collections.abc import Callable

from gateway_app.documents.charsets import decoded
from gateway_app.documents.html_text import read_html
from gateway_app.documents.limits import MAX_CPU_SECS, MAX_MEMORY_BYTES, MAX_TITLE_CHARS, cut
from gateway_app.documents.pdf_text import read_pdf

Reader = Callable[[bytes, str, str], dict[str, str]]
UNREADABLE = 2  # the exit code where the document is the cause; the output is the reason


def read_text(data: bytes, address: str, content_type: str) -> dict[str, str]:
    return {"text": decoded(data, content_type, is_html=False)}


READERS: dict[str, Reader] = {"html": read_html, "pdf": read_pdf, "text": read_text}


def main() -> int:
    """Arguments: the kind of the document, its address, to which links are relative, and its type."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECS, MAX_CPU_SECS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable()  # warnings of a library about the document help no reader
    kind, address, content_type = sys.argv[1:4]
    try:
        found = READERS[kind](sys.stdin.buffer.read(), address, content_type)
    except MemoryError:
        print("it needs too much memory")
        return UNREADABLE
    except Exception as error:  # libraries raise anything for a damaged file
        print(f"it is damaged or of another kind ({type(error).__name__})")
        return UNREADABLE
    shown = {"text": cut(found["text"]), "title": found.get("title", "")[:MAX_TITLE_CHARS]}
    output = json.dumps(shown, ensure_ascii=False)
    sys.stdout.buffer.write(output.encode(errors="replace"))  # a PDF file may have half characters
    return 0
