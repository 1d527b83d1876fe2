"""Any other server with an OpenAI-compatible API: only what nearly all of them accept."""

from gateway_app.config.presets.facts import FormatForm, Preset

CUSTOM = Preset(
    name="custom",
    title="any compatible server",
    format_forms=(
        FormatForm.JSON_SCHEMA,
        FormatForm.OBJECT_WITH_SCHEMA,
        FormatForm.JSON_OBJECT,
        FormatForm.INSTRUCTIONS,
    ),
    resumes_background=True,  # another Hermes Site does; a profile must ask for it
)
