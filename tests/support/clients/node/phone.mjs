// node phone.mjs <app> <server> <key> <folder> <events> [input]: an app that dies after some events, as a phone ends it.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";

const [app, server, key, folder, events, input] = process.argv.slice(2);
const { ask, resume } = await import(app);
const state = `${folder}/state.json`;
const storage = {
  load: () => (existsSync(state) ? JSON.parse(readFileSync(state, "utf8")) : null),
  save(turn) {
    writeFileSync(state, JSON.stringify(turn));
    if (turn && turn.last === Number(events)) process.kill(process.pid, "SIGKILL");
  },
};
const show = (event) => appendFileSync(`${folder}/shown.jsonl`, `${JSON.stringify(event)}\n`);

await (input ? ask(server, key, storage, input, show) : resume(server, key, storage, show));
