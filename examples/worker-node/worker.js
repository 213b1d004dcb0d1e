// A worker in JavaScript, without an SDK: it serves the nodes of greet.yaml over graphd.v1.WorkerService.
// node worker.js [HOST:PORT]; without it GRAPHD_SERVER counts. security.js reads the variables of TLS and tokens.
'use strict'

const path = require('node:path')
const crypto = require('node:crypto')
const grpc = require('@grpc/grpc-js')
const loader = require('@grpc/proto-loader')
const { secure } = require('./security.js')

const protos = path.join(__dirname, '../../proto')
const definition = loader.loadSync('graphd/v1/worker_service.proto', {
  includeDirs: [protos], keepCase: true, longs: String, enums: String, defaults: true, oneofs: true,
})
const { WorkerService } = grpc.loadPackageDefinition(definition).graphd.v1
const server = process.argv[2] || process.env.GRAPHD_SERVER || '127.0.0.1:7700'
const { credentials, options } = secure(server)
const client = new WorkerService(server, credentials, { 'grpc.max_receive_message_length': -1, ...options })

// What a node is given: its keys of the state, and ask(question), which throws until there is an answer.
const nodes = {
  greet: (state) => ({ greeting: `Hello ${state.name}` }),
  approve: (state, ask) => ({ sent: ask(`Send "${state.greeting}"?`, { type: 'boolean' }) }),
}

class Question {
  constructor(ask) { this.ask = ask }
}

// normal is the form of a value that digests are made of: docs/worker-protocol.md says what it is.
function normal(value) {
  if (Array.isArray(value)) return `[${value.map(normal).join()}]`
  if (typeof value === 'number') return normalNumber(JSON.stringify(value))
  if (typeof value === 'string') return quoted(value)
  if (value === null || typeof value !== 'object') return String(value)
  const keys = Object.keys(value).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  return `{${keys.map((key) => `${quoted(key)}:${normal(value[key])}`).join()}}`
}

// quoted escapes what JSON demands, and has no surrogate that stands alone.
function quoted(text) {
  const whole = text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd')
  return JSON.stringify(whole).replace(/\\./g, (short) => ({ '\\b': '\\u0008', '\\f': '\\u000c' })[short] || short)
}

function normalNumber(text) {
  const [, minus, whole, fraction = '', power = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/.exec(text)
  const digits = (whole + fraction).replace(/^0+/, '')
  const kept = digits.replace(/0+$/, '')
  const exponent = Number(power) + digits.length - kept.length - fraction.length
  return kept === '' ? '0' : minus + kept + (exponent ? `e${exponent}` : '')
}

// seen is the digest of what a question shows. An answer is for the question with the same.
function seen(message, schema, value) {
  return crypto.createHash('sha256').update(normal({ message, schema, value })).digest('hex')
}

// perform runs a node from its first line. The n-th question gets the n-th answer of the journal, if that is to what it asks.
function perform(task) {
  const state = Object.fromEntries(Object.entries(task.channels).map(([key, value]) => [key, JSON.parse(value.json)]))
  const answers = task.journal ? task.journal.entries.filter((e) => e.entry === 'answer' && e.scope === '' && !e.key) : []
  const used = []
  let asked = 0
  const ask = (message, schema) => {
    const index = asked++
    const digest = seen(message, schema, message)
    const known = answers.find((e) => e.index === index && e.answer.seen === digest)
    if (known) used.push({ index, seen: digest })
    if (known && known.answer.outcome !== 'value') throw new Error(`the question was ${known.answer.outcome}`)
    if (known) return JSON.parse(known.answer.value.json)
    const response_schema = { json: JSON.stringify(schema) }
    throw new Question({ index, message, value: { json: JSON.stringify(message) }, response_schema })
  }
  try {
    return { completed: { update: { json: JSON.stringify(nodes[task.node](state, ask)) } }, used }
  } catch (thrown) {
    if (thrown instanceof Question) return { interrupted: { asks: [thrown.ask] }, used }
    return { failed: { message: String(thrown.message), type: thrown.name } }
  }
}

const held = new Map() // leases by task: they run, or their results are not delivered yet

// deliver repeats a result until it is answered: it is applied once, however often it comes.
function deliver(id, lease_token, result, pause = 100) {
  client.CompleteTask({ lease_token, result }, { deadline: Date.now() + 10_000 }, (error) => {
    const { UNAVAILABLE, DEADLINE_EXCEEDED, UNAUTHENTICATED } = grpc.status
    const again = error && [UNAVAILABLE, DEADLINE_EXCEEDED, UNAUTHENTICATED].includes(error.code)
    if (again) return setTimeout(deliver, pause, id, lease_token, result, Math.min(pause * 2, 5000))
    if (error) console.error(`the result of ${id} was refused: ${error.details}`)
    held.delete(id)
  })
}

const worker_id = `js-${crypto.randomUUID()}`
let isTaken = false // the server has said welcome once

// connect serves one session, and the next when it breaks.
function connect(pause = 100) {
  const session = client.Connect()
  let beats
  let number = 0
  const again = () => {
    clearInterval(beats)
    setTimeout(connect, pause, Math.min(pause * 2, 5000))
  }
  session.on('error', (error) => {
    console.error(`the session ended: ${error.details}`)
    const { INVALID_ARGUMENT, UNAUTHENTICATED, PERMISSION_DENIED } = grpc.status
    if (error.code === INVALID_ARGUMENT) process.exit(1) // the program is wrong
    if (!isTaken && [UNAUTHENTICATED, PERMISSION_DENIED].includes(error.code)) process.exit(1) // its credentials are
    again()
  })
  session.on('end', again)
  session.on('data', (message) => {
    if (message.welcome) {
      pause = 100
      isTaken = true
      const interval = Number(message.welcome.beat_interval.seconds) * 1000 + message.welcome.beat_interval.nanos / 1e6
      beats = setInterval(() => session.write({ beat: { number: ++number, running: [...held.values()] } }), interval)
      console.log(`serves ${server}`)
    }
    if (message.task) {
      const { task_id, lease } = message.task
      held.set(task_id, lease.token)
      session.write({ update: { lease_token: lease.token, alive: {} } })
      deliver(task_id, lease.token, perform(message.task))
    }
  })
  const manifest = {
    deployment: 'node', min_protocol: 1, max_protocol: 1, features: ['drift'], nodes: [{ graph: 'greet' }],
  }
  session.write({ hello: { worker_id, manifest, held_leases: [...held.values()], credit: { total_slots: 8, revision: 1 } } })
}

connect()
