// The bridge: JSON over loopback HTTP on one side, WhatsApp by a transport module on the other.
//
// `manage.py runplatform whatsapp` starts it, and it ends with that process (its stdin closes).
// From the environment: WHATSAPP_BRIDGE_SECRET, WHATSAPP_BRIDGE_FOLDER, WHATSAPP_TRANSPORT_MODULE,
// WHATSAPP_PREFIX_IN, and WHATSAPP_REPLY_PREFIX, which may be absent, empty or set.

import { timingSafeEqual } from 'node:crypto'
import fs from 'node:fs'
import http from 'node:http'
import { pathToFileURL } from 'node:url'

import { SentKeys, Spool } from './spool.mjs'

const DEFAULT_PREFIX = '⚕ *Hermes Agent*\n────────────\n'
const MAX_BODY_BYTES = 1_000_000
const MAX_WAIT_SECS = 25
const SEND_MS = 60_000 // a send that hangs must not hold all others

const secret = required('WHATSAPP_BRIDGE_SECRET')
const folder = required('WHATSAPP_BRIDGE_FOLDER')
const prefix = replyPrefix(process.env.WHATSAPP_REPLY_PREFIX)
const isPrefixInSelfOnly = process.env.WHATSAPP_PREFIX_IN === 'self'
fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
const spool = new Spool(folder)
const sent = new SentKeys(folder)
const state = { status: 'connecting', qr: '', error: '' }
const inFlight = new Map() // by key
let sending = Promise.resolve() // one message after the other
let transport = null

class Refused extends Error {
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

function required(name) {
  if (!process.env[name]) {
    console.error(`${name} is required.`)
    process.exit(2)
  }
  return process.env[name]
}

function replyPrefix(given) {
  return given === undefined ? DEFAULT_PREFIX : given.replaceAll('\\n', '\n')
}

// -- messages ----------------------------------------------------------------------------
function bare(id) {
  return String(id || '').split('@')[0].split(':')[0]
}

function isSelf(id) {
  return Boolean(id) && bare(id) === bare(transport?.selfId())
}

function withPrefix(chatId, text) {
  return isPrefixInSelfOnly && !isSelf(chatId) ? text : prefix + text
}

/** Messages of the account itself come back too: in its own chat, they may be ours. */
async function take(message) {
  if (!message.messageId || !message.chatId) throw new Error('it has no id or no chat')
  const isSelfChat = isSelf(message.chatId)
  if (message.fromMe && !isSelfChat) return
  if (message.fromMe) {
    await sending // its id is known when it has been sent
    const isEcho = prefix !== '' && String(message.body || '').startsWith(prefix)
    if (isEcho || sent.has(message.messageId)) return
  }
  const names = [...(message.mentionedIds || []), message.quotedParticipant]
  spool.add({ ...message, isSelfChat, isMention: names.some(isSelf) })
}

/** One message that can't be read must not end the bridge, and with it all others. */
async function onMessage(message) {
  try {
    await take(message)
  } catch (error) {
    console.error(`A message of WhatsApp can't be read: ${error.message}`)
  }
}

function onState(change) {
  Object.assign(state, change)
}

// -- what the server asks for --------------------------------------------------------------
function connected() {
  if (state.status !== 'connected') throw new Refused(503, 'WhatsApp is not connected.')
  return transport
}

function fields(body, ...names) {
  for (const name of names) {
    if (typeof body[name] !== 'string' || !body[name]) {
      throw new Refused(400, `${name} is required.`)
    }
  }
  return body
}

function inTime(work) {
  let timer
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Refused(504, 'WhatsApp did not take it in time.')), SEND_MS)
  })
  return Promise.race([work, limit]).finally(() => clearTimeout(timer))
}

/** The same key again is the same message, also while the first is still on its way. */
function once(key, send) {
  const known = sent.get(key)
  if (known) return Promise.resolve(known)
  if (key && inFlight.has(key)) return inFlight.get(key)
  const result = sending.then(async () => {
    const work = send().then((messageId) => {
      sent.add(key || messageId, messageId) // also where it took too long
      return messageId
    })
    return inTime(work)
  })
  sending = result.then(
    () => {},
    () => {},
  )
  if (key) {
    inFlight.set(key, result)
    const forget = () => inFlight.delete(key)
    result.then(forget, forget)
  }
  return result
}

const routes = {
  'GET /health': () => ({
    status: state.status,
    queueLength: spool.length,
    uptime: process.uptime(),
    pid: process.pid,
    qr: state.qr,
    error: state.error || spool.error || sent.error,
    selfId: transport?.selfId() || null,
  }),
  'GET /messages': (_, query) => {
    const wait = Math.min(Number(query.get('wait')) || 0, MAX_WAIT_SECS)
    return spool.after(query.get('after'), wait)
  },
  'POST /send': async (body) => {
    const { chatId, message, replyTo, key } = fields(body, 'chatId', 'message')
    const text = withPrefix(chatId, message)
    const messageId = await once(key, () => connected().send(chatId, text, replyTo))
    return { success: true, messageId }
  },
  'POST /edit': async (body) => {
    const { chatId, messageId, message } = fields(body, 'chatId', 'messageId', 'message')
    await connected().edit(chatId, messageId, withPrefix(chatId, message))
    return { success: true }
  },
  'POST /typing': async (body) => {
    await connected().typing(fields(body, 'chatId').chatId)
    return { success: true }
  },
  'POST /read': async (body) => {
    const { chatId, messageId, senderId } = fields(body, 'chatId', 'messageId')
    await connected().read(chatId, messageId, senderId)
    return { success: true }
  },
  'POST /send-media': async (body) => {
    const { chatId, filePath, mediaType, caption, key } = fields(body, 'chatId', 'filePath')
    if (!fs.existsSync(filePath)) throw new Refused(400, 'filePath names no file.')
    const text = withPrefix(chatId, caption || '')
    const send = () => connected().sendMedia(chatId, filePath, mediaType || 'document', text)
    return { success: true, messageId: await once(key, send) }
  },
}

// -- HTTP --------------------------------------------------------------------------------
function checkCaller(request) {
  const port = server.address().port
  if (![`127.0.0.1:${port}`, `localhost:${port}`].includes(request.headers.host)) {
    throw new Refused(403, 'The Host header must name the loopback address.') // DNS rebinding
  }
  const given = Buffer.from(request.headers.authorization || '')
  const wanted = Buffer.from(`Bearer ${secret}`)
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) {
    throw new Refused(401, 'The secret is wrong.')
  }
}

async function readBody(request) {
  const chunks = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) throw new Refused(413, 'The body is too large.')
    chunks.push(chunk)
  }
  if (!size) return {}
  try {
    const body = JSON.parse(Buffer.concat(chunks).toString())
    if (body && typeof body === 'object') return body
  } catch {
    // refused below
  }
  throw new Refused(400, 'The body must be a JSON object.')
}

async function answer(request) {
  checkCaller(request)
  const address = new URL(request.url, 'http://127.0.0.1')
  const route = routes[`${request.method} ${address.pathname}`]
  if (!route) throw new Refused(404, 'There is nothing here.')
  return route(await readBody(request), address.searchParams)
}

const server = http.createServer(async (request, response) => {
  let status = 200
  let body
  try {
    body = await answer(request)
  } catch (error) {
    status = error.status || 502
    body = { success: false, error: error.message, isPermanent: Boolean(error.isPermanent) }
  }
  response.writeHead(status, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify(body))
})

// -- life --------------------------------------------------------------------------------
process.stdin.on('end', () => process.exit(0)).resume()
process.on('SIGTERM', () => process.exit(0))

const wanted = process.env.WHATSAPP_TRANSPORT_MODULE
const module = wanted ? pathToFileURL(wanted).href : new URL('./baileys.mjs', import.meta.url).href
try {
  const { connect } = await import(module)
  transport = await connect({ folder, onMessage, onState })
} catch (error) {
  onState({ status: 'failed', error: `The transport can't be loaded: ${error.message}` })
}
server.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ event: 'listening', port: server.address().port }))
})
