"""What a model says, as every database and every JSON encoder takes it."""

from dataclasses import fields, replace
from typing import Any

from gateway_app.agent.events import ModelEvent, ModelFinished, TextDelta
from responses_app.protocol.text_buffer import clean_text


def clean_event(event: ModelEvent) -> ModelEvent:
    if isinstance(event, ModelFinished):
        return event
    if isinstance(event, TextDelta):  # nearly all of them, and nearly all of those are clean
        text = clean_text(event.text)
        is_clean = text is event.text and not event.logprobs
        return event if is_clean else TextDelta(text, tuple(clean(list(event.logprobs))))
    return replace(
        event, **{field.name: clean(getattr(event, field.name)) for field in fields(event)}
    )


def clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): clean(inner) for key, inner in value.items()}
    return [clean(inner) for inner in value] if isinstance(value, list) else value
