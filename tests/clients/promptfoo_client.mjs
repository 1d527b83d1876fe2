// Two turns with promptfoo: node promptfoo_client.mjs <base url> <key> <question> <next question>
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [baseURL, apiKey, question, following] = process.argv.slice(2);
const require = createRequire(`${process.cwd()}/package.json`);
const { loadApiProvider } = await import(pathToFileURL(require.resolve("promptfoo")).href);
const provider = await loadApiProvider("openai:responses:hermes-agent", {
  options: { config: { apiBaseUrl: baseURL, apiKey } },
});
const messages = [{ role: "user", content: question }];
const first = await provider.callApi(JSON.stringify(messages));
if (first.error) throw new Error(first.error);
messages.push({ role: "assistant", content: String(first.output) }, { role: "user", content: following });
const second = await provider.callApi(JSON.stringify(messages));
if (second.error) throw new Error(second.error);
console.log(JSON.stringify({ first: String(first.output), second: String(second.output) }));
process.exit(0);
