"""Gemini's compatible endpoint. Sources: ai.google.dev (openai, thought-signatures); SkyrimNet#77."""

from gateway_app.config.presets.facts import Preset, ReasoningReturn

GEMINI = Preset(
    name="gemini",
    title="Gemini",
    base_url="https://generativelanguage.googleapis.com/v1beta/openai",
    needs_key=True,
    takes_unknown_fields=False,  # 400: Unknown name
    reasoning_return=ReasoningReturn.NEVER,
    keeps_call_extras=True,  # the thought signature of a call
)
