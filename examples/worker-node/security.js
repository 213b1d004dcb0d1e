// How calls are protected, and who the caller is: the variables of graphd's commands, see docs/security.md.
'use strict'

const fs = require('node:fs')
const net = require('node:net')
const grpc = require('@grpc/grpc-js')

// secure returns the credentials and the options of a client of a server, HOST:PORT.
function secure(server, env = process.env) {
  const { GRAPHD_TLS_CA: ca, GRAPHD_TLS_CERT: cert, GRAPHD_TLS_KEY: key, GRAPHD_TOKEN: token } = env
  const tls = Boolean(readBool(env.GRAPHD_TLS) || ca || cert || key)
  if (!cert !== !key) throw new Error('GRAPHD_TLS_CERT and GRAPHD_TLS_KEY belong together, and one is missing')
  const read = (path) => (path ? fs.readFileSync(path) : null)
  const credentials = tls ? grpc.credentials.createSsl(read(ca), read(key), read(cert)) : grpc.credentials.createInsecure()
  if (!token) return { credentials, options: {} }
  if (!tls && !isLoopback(server)) {
    throw new Error(`GRAPHD_TOKEN is not sent to ${server} in plain text, where others could read it: ` +
      'name the CA of the server with GRAPHD_TLS_CA, or set GRAPHD_TLS=true when its CA is one of the system')
  }
  const start = (metadata, listener, next) => {
    metadata.set('authorization', `Bearer ${token}`)
    next(metadata, listener)
  }
  const sendToken = (options, next) => new grpc.InterceptingCall(next(options), { start })
  // A proxy could read what goes to this host in plain text.
  return { credentials, options: { interceptors: [sendToken], 'grpc.enable_http_proxy': tls ? 1 : 0 } }
}

function readBool(text = '') {
  if (['1', 't', 'T', 'true', 'TRUE', 'True'].includes(text)) return true
  if (['', '0', 'f', 'F', 'false', 'FALSE', 'False'].includes(text)) return false
  throw new Error(`GRAPHD_TLS is ${JSON.stringify(text)}: want true or false`)
}

function isLoopback(server) {
  const [, host] = /^\[?([^[\]]*?)\]?:\d+$/.exec(server) || []
  return host !== undefined && (host.toLowerCase() === 'localhost' || host === '::1' || (net.isIPv4(host) && host.startsWith('127.')))
}

module.exports = { secure }
