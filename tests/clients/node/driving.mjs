// What the programs share: node PROGRAM <base url> <key> <file of cases> <file for what each saw>
import { readFileSync, writeFileSync } from "node:fs";

export const MODEL = "hermes-agent";
const [baseURL, apiKey, cases, results] = process.argv.slice(2);

export async function drive(packageName, talk) {
  const manifest = new URL(`node_modules/${packageName}/package.json`, import.meta.url);
  const report = { version: JSON.parse(readFileSync(manifest)).version, seen: [] };
  for (const given of JSON.parse(readFileSync(cases))) {
    try {
      report.seen.push({ texts: await talk({ ...given, baseURL, apiKey }) });
    } catch (error) {
      console.error(error);
      report.seen.push({ error: String(error) });
    }
  }
  writeFileSync(results, JSON.stringify(report));
  process.exit(0); // promptfoo keeps connections open
}
