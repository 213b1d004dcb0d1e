/** A worker of the chaos test in TypeScript's SDK: it does what worker.py does. */
import { openSync, writeSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const { Annotation, END, getConfig, interrupt, memo, StateGraph } = await import(
  pathToFileURL(process.env.CHAOS_SDK)
);

const ledger = openSync(process.env.CHAOS_LEDGER, "a", 0o600);
let effects = 0;

/**
 * One line, in one write: processes that share the file don't mix them. A process that is killed may leave half a
 * line, so each begins with a new one.
 */
function write(kind, key, value) {
  const { threadId: thread, taskId: task } = getConfig().executionInfo;
  writeSync(ledger, `\n${JSON.stringify({ kind, key, value, thread, task })}\n`);
}

/** Gives faults a chance to hit between any two lines. */
const sleepRandomly = () => setTimeout(Math.random() * 100);

/** A side effect that must not be repeated once its value is recorded. */
async function once(key) {
  let value;
  try {
    value = await memo(key, async () => {
      const made = `${key}-${process.pid}-${++effects}`;
      write("ran", key, made);
      await sleepRandomly();
      return made;
    });
  } catch (error) {
    write("refused", key, error.reason ?? "");
    throw error;
  }
  write("saw", key, value);
  await sleepRandomly();
  return value;
}

const State = Annotation.Root({
  n: Annotation(),
  round: Annotation(),
  log: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

const ask = ({ n, round }, what) => interrupt({ n, round, ask: what });

async function gather(state) {
  const opened = await once("open");
  const name = ask(state, "name");
  await sleepRandomly();
  const amount = ask(state, "amount");
  const charge = await once("charge");
  return {
    round: state.round + 1,
    log: [`open=${opened}`, `name=${name}`, `amount=${amount}`, `charge=${charge}`],
  };
}

async function pick({ n }) {
  await sleepRandomly();
  return ["desk", "legal", "risk"].slice(0, 1 + (n % 3));
}

const review = (who) => async (state) => {
  const note = await once(`note-${who}`);
  const said = ask(state, who);
  return { log: [`note-${who}=${note}`, `${who}=${said}`] };
};

const settle = async () => ({ log: [`settle=${await once("settle")}`] });

const again = ({ n, round }) => (round <= n % 2 ? "gather" : END);

const builder = new StateGraph(State).addNode("gather", gather).addNode("settle", settle);
for (const who of ["desk", "legal", "risk"]) builder.addNode(who, review(who));
builder.addConditionalEdges("gather", pick).addConditionalEdges("settle", again);
await builder.compile({ server: process.env.CHAOS_SERVER, partOf: "chaos" }).serve();
