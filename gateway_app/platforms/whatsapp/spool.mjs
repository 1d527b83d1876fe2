// What the bridge keeps on disk: messages until they are acknowledged, and the keys of sent ones.
// Every line is on the disk before the bridge acts on it.

import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'

const COMPACT_AFTER = 500 // acknowledged lines
const KEPT_KEYS = 5000

function readLines(file) {
  if (!fs.existsSync(file)) return []
  const found = []
  for (const line of fs.readFileSync(file, 'utf8').split('\n')) {
    if (!line) continue
    try {
      found.push(JSON.parse(line))
    } catch {
      // The last line of a process that was killed while it wrote; nothing was acknowledged for it.
    }
  }
  return found
}

function appendLine(file, value) {
  const descriptor = fs.openSync(file, 'a', 0o600)
  try {
    fs.writeSync(descriptor, JSON.stringify(value) + '\n')
    fs.fsyncSync(descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
}

function replaceLines(file, values) {
  const fresh = `${file}.new`
  const descriptor = fs.openSync(fresh, 'w', 0o600)
  try {
    fs.writeSync(descriptor, values.map((value) => JSON.stringify(value) + '\n').join(''))
    fs.fsyncSync(descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
  fs.renameSync(fresh, file)
}

/** Incoming messages. A cursor is `<id of the spool>:<number>`: one of another spool means 0. */
export class Spool {
  constructor(folder) {
    this.file = path.join(folder, 'messages.jsonl')
    this.waiting = new Set()
    const lines = readLines(this.file)
    this.id = lines.length ? lines[0].spool : randomBytes(6).toString('hex')
    this.last = lines.length ? lines[0].after : 0
    this.entries = lines.slice(1)
    this.acknowledged = 0
    if (!lines.length) this.#rewrite()
    // A line that was cut by a kill must not swallow the next one.
    else if (!fs.readFileSync(this.file, 'utf8').endsWith('\n')) this.#rewrite()
    if (this.entries.length) this.last = this.entries.at(-1).number
    this.known = new Set(this.entries.map((entry) => entry.message.messageId))
  }

  add(message) {
    if (this.known.has(message.messageId)) return
    const entry = { number: this.last + 1, message }
    appendLine(this.file, entry)
    this.last = entry.number
    this.known.add(message.messageId)
    this.entries.push(entry)
    for (const wake of this.waiting) wake()
  }

  /** The messages after a cursor, which also acknowledges all before it. */
  async after(cursor, waitSecs) {
    const number = this.#number(cursor)
    this.#acknowledge(number)
    if (!this.#unread(number).length && waitSecs > 0) await this.#wait(waitSecs)
    const unread = this.#unread(number)
    const newest = unread.length ? unread.at(-1).number : number
    return { messages: unread.map((entry) => entry.message), cursor: `${this.id}:${newest}` }
  }

  get length() {
    return this.entries.length - this.acknowledged
  }

  #number(cursor) {
    const [id, number] = (cursor || '').split(':')
    return id === this.id ? Number(number) || 0 : 0
  }

  #unread(number) {
    return this.entries.filter((entry) => entry.number > number)
  }

  #acknowledge(number) {
    this.acknowledged = this.entries.filter((entry) => entry.number <= number).length
    if (this.acknowledged < COMPACT_AFTER) return
    this.entries = this.entries.slice(this.acknowledged)
    this.known = new Set(this.entries.map((entry) => entry.message.messageId))
    this.acknowledged = 0
    this.#rewrite()
  }

  #rewrite() {
    const before = this.entries.length ? this.entries[0].number - 1 : this.last
    replaceLines(this.file, [{ spool: this.id, after: before }, ...this.entries])
  }

  #wait(secs) {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer)
        this.waiting.delete(wake)
        resolve()
      }
      const timer = setTimeout(wake, secs * 1000)
      this.waiting.add(wake)
    })
  }
}

/** The ids of sent messages by their keys: a repeat is answered from here, and not sent again. */
export class SentKeys {
  constructor(folder) {
    this.file = path.join(folder, 'sent.jsonl')
    const lines = readLines(this.file).slice(-KEPT_KEYS)
    this.byKey = new Map(lines.map((line) => [line.key, line.messageId]))
    this.ids = new Set(lines.map((line) => line.messageId))
    replaceLines(this.file, lines)
  }

  get(key) {
    return key ? this.byKey.get(key) : undefined
  }

  add(key, messageId) {
    appendLine(this.file, { key, messageId })
    this.byKey.set(key, messageId)
    this.ids.add(messageId)
  }

  has(messageId) {
    return this.ids.has(messageId)
  }
}
