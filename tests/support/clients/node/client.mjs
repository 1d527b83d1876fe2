// node client.mjs <base url> <key>: for each line [scenario, argument ...] a line of JSON with what the SDK saw.
import OpenAI from "openai";
import { answerLines } from "./lines.mjs";

const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0, timeout: 30_000 });
const model = "hermes-agent";

const summary = (response) => ({
  id: response.id,
  status: response.status,
  text: response.output_text,
  items: response.output.map((item) => item.type),
});

async function numbersOf(stream) {
  const numbers = [];
  for await (const event of stream) numbers.push(event.sequence_number);
  return numbers;
}

async function refusal(call) {
  try {
    await call();
    return null;
  } catch (error) {
    const isNotFound = error instanceof OpenAI.NotFoundError;
    return { isNotFound, status: error.status, code: error.code, requestId: error.requestID };
  }
}

const scenarios = {
  async stream(input) {
    const stream = client.responses.stream({ model, input });
    const numbers = await numbersOf(stream);
    return { numbers, ...summary(await stream.finalResponse()) };
  },

  async cut(input, count) {
    const stream = client.responses.stream({ model, input });
    const numbers = [];
    let id;
    for await (const event of stream) {
      id ??= event.response.id;
      numbers.push(event.sequence_number);
      if (numbers.length === Number(count)) break; // leaving the loop aborts the request
    }
    return { id, numbers, aborted: stream.controller.signal.aborted };
  },

  // The helper replays from the start and filters by itself, so the server's own cursor is asked for as well.
  async resume(id, after) {
    const starting_after = Number(after);
    const raw = await client.responses.retrieve(id, { stream: true, starting_after });
    const helper = client.responses.stream({ response_id: id, starting_after });
    const [numbers, helperNumbers] = await Promise.all([numbersOf(raw), numbersOf(helper)]);
    return { numbers, helperNumbers, ...summary(await helper.finalResponse()) };
  },

  async chain(...inputs) {
    const links = [];
    for (const input of inputs) {
      const response = await client.responses.create({ model, input, previous_response_id: links.at(-1)?.id });
      links.push({ previous: response.previous_response_id, ...summary(response) });
    }
    return links;
  },

  async chat(content, tools = "null") {
    const asked = { model, messages: [{ role: "user", content }], tools: JSON.parse(tools) ?? undefined };
    const stream = client.chat.completions.stream({ ...asked, stream_options: { include_usage: true } });
    const final = await stream.finalChatCompletion();
    const { finish_reason, message } = final.choices[0];
    return { id: final.id, finish_reason, text: message.content, calls: message.tool_calls, usage: final.usage };
  },

  async missing(id) {
    return {
      retrieve: await refusal(() => client.responses.retrieve(id)),
      replay: await refusal(() => client.responses.retrieve(id, { stream: true })),
      helper: await refusal(() => client.responses.stream({ response_id: id }).finalResponse()),
      delete: await refusal(() => client.responses.delete(id)),
    };
  },
};

await answerLines(scenarios);
