/** What a case shows, in the shapes in which LangGraph.js shows it. */
type Fields = Record<string, any>;
type Step = { mode?: string | string[]; subgraphs?: boolean; output_keys?: string | string[] };

export function toJavaScript(step: Step, expected: Fields): Fields {
  if (expected.events === undefined) return convertTasks(expected);
  const isList = Array.isArray(step.mode);
  const events = withoutSchemas(expected.events).map((event: any) => {
    const isBare = !isList && !step.subgraphs;
    const mode: string = isList ? event.at(-2) : ((step.mode as string | undefined) ?? "updates");
    const data = isBare ? event : event.at(-1);
    const isOfRoot = !step.subgraphs || event[0].length === 0;
    const hasOneKey = isOfRoot && typeof step.output_keys === "string";
    const shown = convert(mode, hasOneKey ? withoutSilent(mode, data) : data);
    return isBare ? shown : [...event.slice(0, -1), shown];
  });
  const groups = expected.groups && [...expected.groups];
  tellBreakpointInValues(step, events, groups);
  return { ...expected, events, ...(groups && { groups }) };
}

/** Tasks have no paths in LangGraph.js, and no result when they wrote nothing. */
function convertTasks(value: any): any {
  if (Array.isArray(value)) return value.map(convertTasks);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).filter(
    ([key, item]: [string, any]) =>
      !(key === "path" && Array.isArray(item)) && !(key === "result" && isEmpty(item)),
  );
  return Object.fromEntries(fields.map(([key, item]) => [key, convertTasks(item)]));
}

function isEmpty(value: any): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** With one key, a node of the root that did not write it is left out. */
function withoutSilent(mode: string, data: any): any {
  if (mode !== "updates") return data;
  return Object.fromEntries(Object.entries(data).filter(([, update]) => update !== null));
}

/** A question without a schema has none in LangGraph.js, in place of null. */
function withoutSchemas(value: any): any {
  if (Array.isArray(value)) return value.map(withoutSchemas);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).filter(([key, item]) => key !== "response_schema" || item !== null);
  return Object.fromEntries(fields.map(([key, item]) => [key, withoutSchemas(item)]));
}

function convert(mode: string, data: any): any {
  if (typeof data !== "object" || data === null || Array.isArray(data)) return data;
  switch (mode) {
    case "updates":
      return Object.fromEntries(Object.entries(data).map(([node, update]) => [node, update ?? {}]));
    case "values":
      return "__interrupt__" in data ? { __interrupt__: data.__interrupt__ } : data;
    case "tasks":
      return "input" in data ? { ...data, interrupts: [] } : { ...data, error: convertError(data.error) };
    case "checkpoints":
      return convertCheckpoint(data);
    case "debug":
      return {
        ...data,
        payload: convert(data.type === "checkpoint" ? "checkpoints" : "tasks", data.payload),
      };
    default:
      return data;
  }
}

/** The classes of errors differ, and what the library says of a wrong update; their names do not. */
function convertError(error: any): any {
  if (!error?.$exception) return error;
  const { $exception: name, message } = error;
  return { name, message: name === "InvalidUpdateError" ? "<error>" : message };
}

function convertCheckpoint({ parent_config: parentConfig, ...data }: Fields): Fields {
  const withoutState = ({ state, ...task }: Fields) => (state === null ? task : { ...task, state });
  const tasks = Array.isArray(data.tasks) ? data.tasks.map(withoutState) : data.tasks;
  return { ...data, ...(parentConfig && { parentConfig }), tasks };
}

/** A breakpoint is told in values as well. */
function tellBreakpointInValues({ mode }: Step, events: any[], groups: number[] | undefined): void {
  if (!Array.isArray(mode) || !mode.includes("values")) return;
  const at = events.findIndex(
    (event) => event.at(-2) === "updates" && event.at(-1)?.__interrupt__?.length === 0,
  );
  if (at < 0) return;
  events.splice(at + 1, 0, [...events[at].slice(0, -2), "values", { __interrupt__: [] }]);
  groups?.push(1);
}
