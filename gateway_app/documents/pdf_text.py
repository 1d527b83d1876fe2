"""The text of a PDF file. Only the worker runs this: a small file can need any time and memory."""

import io

from gateway_app.documents.limits import MAX_PAGES, MAX_TEXT_CHARS


def read_pdf(data: bytes, address: str, content_type: str) -> dict[str, str]:
    # Half a second that the server itself need not spend.
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        return {"text": "[The file has a password: its text can't be read.]"}
    texts: list[str] = []
    chars = 0
    for number, page in enumerate(reader.pages, 1):
        if number > MAX_PAGES:
            texts.append(f"[cut: only the first {MAX_PAGES} pages are read]")
            break
        text = page.extract_text().strip()
        texts.append(f"[page {number}]\n{text}")
        chars += len(text)
        if chars > MAX_TEXT_CHARS:
            break
    if not chars:
        return {"text": f"[{len(texts)} pages without text: they may be scanned images.]"}
    return {"text": "\n\n".join(texts)}
