"""A page of a file is no larger than what the model's window takes of one result."""

from pathlib import Path

from gateway_app.agent.tools import ToolContext
from gateway_app.tools.read_file import TOOL as READ_FILE
from responses_app.protocol.token_estimate import text_tokens
from tests.support.tool_runs import text_of


async def test_a_page_is_no_larger_than_the_window_takes(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("渡轮每天早上出发\n" * 500)
    context = ToolContext(tmp_path, report=lambda _: None, max_tokens=600)
    page = await text_of(READ_FILE.run({"path": "long"}, context))
    assert text_tokens(page) <= 600
    shown, _, note = page.rpartition("\n")
    assert note.startswith(f"[cut: go on with read_file offset={shown.count(chr(10)) + 2};")
