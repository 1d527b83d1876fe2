// node ai.mjs <base url> <key>: for each line [scenario, argument ...] a line of JSON with what the AI SDK saw.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { answerLines } from "./lines.mjs";

const [baseURL, apiKey] = process.argv.slice(2);
const provider = createOpenAI({ baseURL, apiKey });
const model = provider.responses("hermes-agent");
const chat = provider.chat("hermes-agent");
const tools = {
  get_weather: tool({
    description: "The weather in a city.",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => `windy in ${city}`,
  }),
};

const scenarios = {
  async stream() {
    const result = streamText({ model, prompt: "ai sdk says hello" });
    let text = "";
    for await (const delta of result.textStream) text += delta;
    return { text, finish: await result.finishReason, tokens: (await result.usage).outputTokens };
  },
  async reasoning() {
    const result = streamText({ model, prompt: "think about it", maxRetries: 0 });
    await result.consumeStream();
    const plain = await generateText({ model, prompt: "think about it", maxRetries: 0 });
    return [await result.reasoningText, plain.reasoningText];
  },
  async tools() {
    const result = await generateText({
      model, tools, prompt: "What is the weather?", stopWhen: stepCountIs(3), maxRetries: 0,
    });
    return { text: result.text, steps: result.steps.length };
  },
  async chat() {
    const parts = [];
    const result = streamText({ model: chat, prompt: "calculate 6*7", maxRetries: 0 });
    for await (const part of result.fullStream) parts.push(part.type);
    const answered = await generateText({
      model: chat, tools, prompt: "What is the weather?", stopWhen: stepCountIs(3), maxRetries: 0,
    });
    return { text: await result.text, parts, tokens: (await result.usage).outputTokens, answered: answered.text };
  },
  async turns() {
    const first = { role: "user", content: "ai sdk turn one" };
    const answer = await generateText({ model, messages: [first], maxRetries: 0 });
    const messages = [first, ...answer.response.messages, { role: "user", content: "ai sdk turn two" }];
    const next = await generateText({ model, messages, maxRetries: 0 });
    return { first: answer.text, second: next.text };
  },
  async serverTool(...texts) {
    const [asked, next] = texts.map((content) => ({ role: "user", content }));
    const answer = await generateText({ model, messages: [asked], maxRetries: 0 });
    const messages = [asked, ...answer.response.messages, next];
    const second = await generateText({ model, messages, maxRetries: 0 });
    return { first: answer.text, second: second.text };
  },
  async compaction() {
    const managed = createOpenAI({ baseURL, apiKey, fetch: (url, sent) => fetch(url, { ...sent, body: compacting(sent) }) });
    const asked = { model: managed.responses("hermes-agent"), maxRetries: 0 };
    const messages = [{ role: "user", content: `ai sdk talks ${"word ".repeat(900)}` }];
    const parts = [];
    for (const question of ["ai sdk goes on", "ai sdk comes back"]) {
      const result = streamText({ ...asked, messages });
      for await (const part of result.fullStream) parts.push(part.type);
      messages.push(...(await result.response).messages, { role: "user", content: question });
    }
    const result = streamText({ ...asked, messages });
    for await (const part of result.fullStream) parts.push(part.type);
    return { text: await result.text, parts };
  },
};

function compacting(sent) {
  const context_management = [{ type: "compaction", compact_threshold: 1000 }];
  return JSON.stringify({ ...JSON.parse(sent.body), context_management });
}

await answerLines(scenarios);
