// Turns with promptfoo.
import promptfoo from "promptfoo";
import { MODEL, drive } from "./driving.mjs";

await drive("promptfoo", async ({ baseURL, apiKey, api, is_streamed, is_chained, questions }) => {
  const texts = [];
  const messages = [];
  let previous_response_id;
  for (const content of questions) {
    const asked = { role: "user", content };
    messages.push(asked);
    const config = { apiBaseUrl: baseURL, apiKey, stream: is_streamed, previous_response_id };
    const provider = await promptfoo.loadApiProvider(`openai:${api}:${MODEL}`, { options: { config } });
    const answer = await provider.callApi(JSON.stringify(is_chained ? [asked] : messages));
    if (answer.error) throw new Error(answer.error);
    messages.push({ role: "assistant", content: String(answer.output) });
    texts.push(String(answer.output));
    if (is_chained) previous_response_id = answer.raw.id;
  }
  return texts;
});
