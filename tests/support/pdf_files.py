"""PDF files for the tests, written by hand."""

import base64
import zlib


def pdf(*pages: str) -> bytes:
    """A file with these texts, one page each."""
    return _pdf([_stream(f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()) for text in pages])


def compressed_pdf(*pages: str) -> bytes:
    """The same, as most programs write it."""
    contents = []
    for text in pages:
        drawn = zlib.compress(f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode())
        contents.append(_stream(drawn, " /Filter /FlateDecode"))
    return _pdf(contents)


def pdf_bomb(size: int) -> bytes:
    """A small file with a page that unpacks to so many bytes."""
    once = zlib.compress(b" " * size, 9)
    return _pdf([_stream(zlib.compress(once, 9), " /Filter [/FlateDecode /FlateDecode]")])


def slow_pdf(number: int) -> bytes:
    """A small file that takes seconds to read."""
    drawn = f"BT /F1 9 Tf 12 TL 10 800 Td ({number}) Tj ".encode() + b"(a b) Tj T* " * 1_000_000 + b"ET"
    return _pdf([_stream(zlib.compress(drawn), " /Filter /FlateDecode")])


def as_data_url(data: bytes, kind: str = "application/pdf") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _stream(data: bytes, extra: str = "") -> bytes:
    return f"<< /Length {len(data)}{extra} >>\nstream\n".encode() + data + b"\nendstream"


def _pdf(contents: list[bytes]) -> bytes:
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(contents)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for index, content in enumerate(contents):
        resources = "/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 612 792]"
        objects.append(f"<< /Type /Page /Parent 2 0 R {resources} /Contents {5 + 2 * index} 0 R >>".encode())
        objects.append(content)
    body = b"%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    end = (
        f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(body)}\n"
    )
    return body + end.encode() + b"%%EOF\n"
