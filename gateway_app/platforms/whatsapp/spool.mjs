// What the bridge keeps on disk: messages until they are acknowledged, and the keys of sent ones.
// Every line is on the disk before the bridge acts on it, unless the disk is full.

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
      const value = JSON.parse(line)
      if (value && typeof value === 'object') found.push(value)
    } catch {
      // A process was killed while it wrote the line, or the file is damaged.
      console.error(`${path.basename(file)} has a line that can't be read.`)
    }
  }
  return found
}

function writeAll(file, flags, text) {
  const descriptor = fs.openSync(file, flags, 0o600)
  try {
    fs.writeFileSync(descriptor, text) // all of it or an error; writeSync may write a part
    fs.fsyncSync(descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
}

const asLine = (value) => JSON.stringify(value) + '\n'

/** A file of lines. What a full disk does not take stays in memory, and is written later. */
class Journal {
  constructor(file) {
    this.file = file
    this.error = ''
  }

  read() {
    return readLines(this.file)
  }

  /** `all` makes the whole content: after an error, the end of the file may be half a line. */
  append(value, all) {
    if (this.error) this.repair(all)
    else this.#attempt(() => writeAll(this.file, 'a', asLine(value)))
  }

  repair(all) {
    this.#attempt(() => this.replace(all()))
  }

  replace(values) {
    const fresh = `${this.file}.new`
    writeAll(fresh, 'w', values.map(asLine).join(''))
    fs.renameSync(fresh, this.file)
  }

  #attempt(write) {
    try {
      write()
      this.error = ''
    } catch (error) {
      this.error = `${path.basename(this.file)} can't be written: ${error.message}`
      console.error(this.error)
    }
  }
}

/** Incoming messages. A cursor is `<id of the spool>:<number>`: one of another spool means 0. */
export class Spool {
  constructor(folder) {
    this.journal = new Journal(path.join(folder, 'messages.jsonl'))
    this.waiting = new Set()
    const lines = this.journal.read()
    const hasHeader = typeof lines[0]?.spool === 'string' && Number.isInteger(lines[0].after)
    this.entries = lines.filter((line) => Number.isInteger(line.number) && line.message?.messageId)
    // Without its header it is another spool: the server gets all of its messages again.
    this.id = hasHeader ? lines[0].spool : randomBytes(6).toString('hex')
    this.last = hasHeader ? lines[0].after : 0
    if (this.entries.length) this.last = this.entries.at(-1).number
    this.acknowledged = 0
    this.known = new Set(this.entries.map((entry) => entry.message.messageId))
    // A line that was cut by a kill must not swallow the next one.
    this.journal.replace(this.#lines())
  }

  get error() {
    return this.journal.error
  }

  add(message) {
    if (this.known.has(message.messageId)) return
    const entry = { number: this.last + 1, message }
    this.last = entry.number
    this.known.add(message.messageId)
    this.entries.push(entry)
    this.journal.append(entry, () => this.#lines())
    for (const wake of this.waiting) wake()
  }

  /** The messages after a cursor, which also acknowledges all before it. */
  async after(cursor, waitSecs) {
    const number = this.#number(cursor)
    if (this.journal.error) this.journal.repair(() => this.#lines())
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
    const [id, digits] = (cursor || '').split(':')
    const number = Number(digits) || 0
    // A cursor ahead of the file is from before its end was lost: the numbers are used again.
    return id === this.id && number <= this.last ? number : 0
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
    this.journal.repair(() => this.#lines())
  }

  #lines() {
    const before = this.entries.length ? this.entries[0].number - 1 : this.last
    return [{ spool: this.id, after: before }, ...this.entries]
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
    this.journal = new Journal(path.join(folder, 'sent.jsonl'))
    const lines = this.journal.read().filter((line) => line.key && line.messageId).slice(-KEPT_KEYS)
    this.byKey = new Map(lines.map((line) => [line.key, line.messageId]))
    this.ids = new Set(this.byKey.values())
    this.journal.replace(lines)
  }

  get error() {
    return this.journal.error
  }

  get(key) {
    return key ? this.byKey.get(key) : undefined
  }

  add(key, messageId) {
    this.byKey.set(key, messageId)
    this.ids.add(messageId)
    this.journal.append({ key, messageId }, () => this.#lines())
  }

  #lines() {
    return [...this.byKey].map(([key, messageId]) => ({ key, messageId }))
  }

  has(messageId) {
    return this.ids.has(messageId)
  }
}
