// Scenarios by lines of standard input: a start of Node.js with an SDK costs more than most of them.
import { createInterface } from "node:readline";

export async function answerLines(scenarios) {
  for await (const line of createInterface({ input: process.stdin })) {
    const [scenario, ...args] = JSON.parse(line);
    console.log(JSON.stringify(await scenarios[scenario](...args)));
  }
}
