"""Gemini's compatible endpoint. Sources: ai.google.dev (openai, thought-signatures); SkyrimNet#77."""

from gateway_app.config.presets.facts import Preset, ReasoningReturn

GEMINI = Preset(
    name="gemini",
    title="Gemini",
    base_url="https://generativelanguage.googleapis.com/v1beta/openai",
    needs_key=True,
    takes_unknown_fields=False,  # 400: Unknown name
    reasoning_return=ReasoningReturn.NEVER,
    # Gemini 3 and newer answer 400 to a call without a signature; Google documents this value for
    # calls that another model made.
    placeholder_extras={"google": {"thought_signature": "skip_thought_signature_validator"}},
    placeholder_models=r"(?:models/)?gemini-(?![12]\b)",
)
