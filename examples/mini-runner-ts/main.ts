/** Two questions in one function: each answer runs it again from its first line. */
import { Annotation, Command, interrupt, isInterrupted, MemorySaver, START, StateGraph } from "graphd";

function introduce() {
  console.log("Step 1: who are you?");
  const name: string = interrupt("What is your name?");
  console.log(`Hello, ${name}!`);
  const age: string = interrupt("How old are you?");
  console.log(`${name} is ${age}.`);
  return { result: `User ${name} is ${age} years old.` };
}

const graph = new StateGraph(Annotation.Root({ result: Annotation<string>() }))
  .addNode("introduce", introduce)
  .addEdge(START, "introduce")
  .compile({ checkpointer: new MemorySaver() });

const config = { configurable: { thread_id: "1" } };
for (const input of [{}, new Command({ resume: "Alice" }), new Command({ resume: "25" })]) {
  const state = await graph.invoke(input, config);
  console.log(isInterrupted(state) ? `interrupted: ${state.__interrupt__[0]?.value}` : `completed: ${state.result}`);
}
