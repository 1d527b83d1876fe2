// Turns with the AI SDK.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText } from "ai";
import { MODEL, drive } from "./driving.mjs";

await drive("ai", async ({ baseURL, apiKey, api, is_streamed, is_chained, questions }) => {
  const model = createOpenAI({ baseURL, apiKey })[api](MODEL);
  const texts = [];
  let messages = [];
  let providerOptions;
  for (const content of questions) {
    const asked = { role: "user", content };
    messages.push(asked);
    const options = { model, messages: is_chained ? [asked] : messages, providerOptions, maxRetries: 0 };
    const result = is_streamed ? await streamed(options) : await generateText(options);
    const calls = (await result.toolCalls).filter((call) => !call.providerExecuted);
    if (calls.length) throw new Error(`calls of its own: ${JSON.stringify(calls)}`);
    texts.push(await result.text);
    messages = [...messages, ...(await result.response).messages];
    if (is_chained) providerOptions = { openai: { previousResponseId: await responseId(result) } };
  }
  return texts;
});

async function streamed(options) {
  const result = streamText({ ...options, onError: () => {} });
  for await (const part of result.fullStream) {
    if (part.type === "error") throw part.error;
  }
  return result;
}

async function responseId(result) {
  return (await result.providerMetadata).openai.responseId;
}
