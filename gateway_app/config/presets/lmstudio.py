"""LM Studio. Sources: lmstudio-ai/docs api-changelog.md, tools.mdx; lmstudio-bug-tracker#189, #670."""

from gateway_app.config.presets.facts import Preset

LMSTUDIO = Preset(
    name="lmstudio",
    title="LM Studio",
    base_url="http://127.0.0.1:1234/v1",
    takes_named_choice=False,  # it answers 400
    writes_calls_as_text=True,  # a call that its parser rejects stays in the text
    truncates_silently=True,
)
