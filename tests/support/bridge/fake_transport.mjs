// A transport without WhatsApp: a folder in its place. The test writes `in.jsonl`, which is followed, and reads
// `out.jsonl`. Files named `refuse`, `hang` and `die-after-send` change what a send does.

import fs from 'node:fs'
import path from 'node:path'

const SELF = '49999:7@s.whatsapp.net'

export async function connect({ folder, onMessage, onState }) {
  const network = process.env.FAKE_NETWORK
  const at = (name) => path.join(network, name)
  const write = (line) => fs.appendFileSync(at('out.jsonl'), JSON.stringify(line) + '\n')
  let read = fs.existsSync(path.join(folder, 'position')) ? Number(fs.readFileSync(path.join(folder, 'position'))) : 0
  let count = 0

  async function receive() {
    if (!fs.existsSync(at('in.jsonl'))) return
    const lines = fs.readFileSync(at('in.jsonl'), 'utf8').split('\n').slice(0, -1)
    while (read < lines.length) {
      await onMessage(JSON.parse(lines[read]))
      read += 1
      fs.writeFileSync(path.join(folder, 'position'), String(read))
    }
  }

  async function follow() {
    if (fs.existsSync(at('hang'))) {
      fs.rmSync(at('hang'))
      for (;;); // the whole process hangs, with every request
    }
    if (fs.existsSync(at('qr'))) onState({ status: 'pairing', qr: fs.readFileSync(at('qr'), 'utf8') })
    else onState({ status: 'connected', qr: '' })
    await receive()
    setTimeout(follow, 20)
  }

  setTimeout(follow, 0)
  onState({ status: 'connected' })
  write({ started: process.pid, prefix: process.env.WHATSAPP_REPLY_PREFIX ?? null })
  return {
    selfId: () => SELF,
    async send(chatId, text, replyTo) {
      if (fs.existsSync(at('refuse'))) throw Object.assign(new Error('no such chat'), { isPermanent: true })
      count += 1
      const messageId = `3EB0${process.pid}-${count}`
      write({ sent: messageId, chat: chatId, text, replyTo })
      if (fs.existsSync(at('die-after-send'))) {
        fs.rmSync(at('die-after-send'))
        process.exit(9)
      }
      // As WhatsApp does: what the account writes in its own chat comes back.
      if (chatId.startsWith('49999')) {
        const echo = { messageId, chatId, senderId: SELF, fromMe: true, isGroup: false, body: text, timestamp: 1 }
        onMessage(echo)
      }
      return messageId
    },
    async edit(chatId, messageId, text) {
      write({ edited: messageId, chat: chatId, text })
    },
    async sendMedia(chatId, filePath, mediaType, caption) {
      count += 1
      write({ media: filePath, kind: mediaType, chat: chatId, text: caption })
      return `media-${count}`
    },
    async typing(chatId) {
      write({ typing: chatId })
    },
    async read(chatId, messageId) {
      write({ read: messageId, chat: chatId })
    },
  }
}
