"""The result of an MCP server's tool for the model: as text, and its images."""

import json

from mcp import types

from gateway_app.tools.support.images import MAX_IMAGES, image_url

Block = (
    types.TextContent
    | types.ImageContent
    | types.AudioContent
    | types.ResourceLink
    | types.EmbeddedResource
)


def as_text(result: types.CallToolResult) -> str:
    """Texts as they are, other content as a line that names it; without texts, structured content."""
    parts = []
    has_text = False
    for block in result.content:
        parts.append(_block(block))
        has_text = has_text or _is_text(block)
    if result.structured_content is not None and not has_text:
        parts.append(json.dumps(result.structured_content, ensure_ascii=False))
    return "\n".join(filter(None, parts))


def images_in(result: types.CallToolResult) -> tuple[str, ...]:
    """As data URLs; the text describes each of them, also those that are too large."""
    found = []
    for block in result.content:
        if isinstance(block, types.ImageContent):
            found.append(image_url(block.mime_type, block.data))
        elif isinstance(block, types.EmbeddedResource) and isinstance(
            block.resource, types.BlobResourceContents
        ):
            found.append(image_url(block.resource.mime_type or "", block.resource.blob))
    return tuple(filter(None, found))[:MAX_IMAGES]


def progress_text(progress: float, total: float | None, message: str | None) -> str:
    if message:
        return f"{message}\n"
    if total is None:
        return f"{progress:g}\n"
    return f"{progress:g}/{total:g}\n"


def _is_text(block: Block) -> bool:
    if isinstance(block, types.EmbeddedResource):
        return isinstance(block.resource, types.TextResourceContents)
    return isinstance(block, types.TextContent) and bool(block.text)


def _block(block: Block) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.ImageContent() | types.AudioContent():
            return f"[{block.type}, {block.mime_type}, {_decoded_bytes(block.data)} bytes]"
        case types.ResourceLink():
            size = ""
            if block.size is not None:
                size = f", {block.size} bytes"
            return f"[link to {block.uri}, {block.mime_type or 'unknown type'}{size}]"
        case types.EmbeddedResource():
            return _resource(block.resource)


def _resource(resource: types.TextResourceContents | types.BlobResourceContents) -> str:
    kind = resource.mime_type or "unknown type"
    if isinstance(resource, types.TextResourceContents):
        return (
            f"[resource {resource.uri}, {kind}, {len(resource.text)} characters]\n{resource.text}"
        )
    return f"[resource {resource.uri}, {kind}, {_decoded_bytes(resource.blob)} bytes]"


def _decoded_bytes(base64: str) -> int:
    return len(base64) * 3 // 4 - base64[-2:].count("=")
