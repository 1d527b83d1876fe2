"""How much of a document is read."""

MAX_FILE_BYTES = 7_000_000  # in base64 it still fits into the largest request body
MAX_PAGES = 500
MAX_TEXT_CHARS = 400_000  # about the largest context window of current models
MAX_TITLE_CHARS = 500
# Of the worker, as JSON in UTF-8, where a control character takes six bytes.
MAX_OUTPUT_BYTES = 6 * (MAX_TEXT_CHARS + MAX_TITLE_CHARS + 500)
# Of the process that reads a document. A file of some kilobytes can unpack to gigabytes.
MAX_MEMORY_BYTES = 768 * 1024 * 1024
MAX_CPU_SECS = 20
MAX_SECS = 40  # also on a busy machine


def cut(text: str) -> str:
    if len(text) <= MAX_TEXT_CHARS:
        return text
    return f"{text[:MAX_TEXT_CHARS]}\n[cut: the first {MAX_TEXT_CHARS} characters are shown]"
