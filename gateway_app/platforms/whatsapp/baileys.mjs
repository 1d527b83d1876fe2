// The Baileys transport, written against its documented interface and not tried by the tests.
// Install the package beside this file, or name another module in whatsapp.transport_module.

import path from 'node:path'

const PACKAGE = process.env.WHATSAPP_BAILEYS_PACKAGE || '@whiskeysockets/baileys'
const RECONNECT_MS = 3000

export async function connect({ folder, onMessage, onState }) {
  const baileys = await import(PACKAGE)
  const makeSocket = baileys.makeWASocket || baileys.default
  const { state: auth, saveCreds } = await baileys.useMultiFileAuthState(path.join(folder, 'auth'))
  let socket = null

  function open() {
    socket = makeSocket({ auth, markOnlineOnConnect: false, syncFullHistory: false })
    socket.ev.on('creds.update', saveCreds)
    socket.ev.on('connection.update', onUpdate)
    socket.ev.on('messages.upsert', ({ messages }) => {
      for (const message of messages) {
        const read = readMessage(message)
        if (read) onMessage(read)
      }
    })
  }

  function onUpdate({ connection, lastDisconnect, qr }) {
    if (qr) onState({ status: 'pairing', qr, error: '' })
    if (connection === 'open') onState({ status: 'connected', qr: '', error: '' })
    if (connection !== 'close') return
    const code = lastDisconnect?.error?.output?.statusCode
    if (code === baileys.DisconnectReason.loggedOut) {
      onState({ status: 'failed', qr: '', error: 'The phone has unlinked this device: pair it again.' })
      return
    }
    onState({ status: 'connecting', error: lastDisconnect?.error?.message || '' })
    setTimeout(open, RECONNECT_MS)
  }

  open()
  const keyOf = (chatId, id, fromMe, participant) => ({ remoteJid: chatId, id, fromMe, participant })
  return {
    selfId: () => socket?.user?.id || auth.creds.me?.id || '',
    async send(chatId, text, replyTo) {
      const options = replyTo ? { quoted: { key: keyOf(chatId, replyTo, false), message: {} } } : {}
      return (await socket.sendMessage(chatId, { text }, options)).key.id
    },
    async edit(chatId, messageId, text) {
      await socket.sendMessage(chatId, { text, edit: keyOf(chatId, messageId, true) })
    },
    async sendMedia(chatId, filePath, mediaType, caption) {
      const content = { [mediaType]: { url: filePath }, caption }
      if (mediaType === 'document') content.fileName = path.basename(filePath)
      return (await socket.sendMessage(chatId, content)).key.id
    },
    async typing(chatId) {
      await socket.sendPresenceUpdate('composing', chatId)
    },
    async read(chatId, messageId, senderId) {
      await socket.readMessages([keyOf(chatId, messageId, false, senderId)])
    },
  }
}

const MEDIA = ['image', 'video', 'audio', 'document', 'sticker']

function readMessage({ key, message, messageTimestamp, pushName }) {
  const content = message?.ephemeralMessage?.message || message
  if (!content || !key.remoteJid || key.remoteJid === 'status@broadcast') return null
  const extended = content.extendedTextMessage
  const media = MEDIA.find((kind) => content[`${kind}Message`])
  const caption = media ? content[`${media}Message`].caption : ''
  const body = content.conversation || extended?.text || caption || ''
  if (!body && !media) return null
  const context = extended?.contextInfo || (media && content[`${media}Message`].contextInfo) || {}
  return {
    messageId: key.id,
    chatId: key.remoteJid,
    senderId: key.participant || key.remoteJid,
    senderName: pushName || '',
    isGroup: key.remoteJid.endsWith('@g.us'),
    fromMe: Boolean(key.fromMe),
    body,
    hasMedia: Boolean(media),
    mediaType: media || '',
    mentionedIds: context.mentionedJid || [],
    quotedParticipant: context.participant || '',
    timestamp: Number(messageTimestamp),
  }
}
