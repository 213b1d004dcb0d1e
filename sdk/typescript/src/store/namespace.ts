/** Throws a TypeError for a namespace that nothing can be put into. */
export function checkNamespace(namespace: unknown): void {
  checkLabels(namespace);
  const labels = namespace as readonly string[];
  if (labels.length === 0) throw new TypeError(`the namespace is empty: ${EXAMPLE}`);
  if (labels[0] === "langgraph") {
    throw new TypeError('the first label of a namespace must not be "langgraph": choose another one');
  }
}

const EXAMPLE = 'a namespace is a list of texts, like ["users", "alice"]';

/** Throws a TypeError for labels that no namespace has. */
export function checkLabels(labels: unknown): void {
  const isList = Array.isArray(labels) && labels.every((one) => typeof one === "string" && one !== "");
  if (!isList) throw new TypeError(EXAMPLE);
  const wrong = labels.find((one: string) => /[.\0]/.test(one));
  if (wrong !== undefined)
    throw new TypeError(`the label ${JSON.stringify(wrong)} has a period or a NUL in it`);
}

/** Puts namespaces in the order of their labels, by code points. */
export function compareNamespaces(left: readonly string[], right: readonly string[]): number {
  for (const [at, label] of left.entries()) {
    const other = right[at];
    if (other === undefined) return 1;
    if (label !== other) return compareTexts(label, other);
  }
  return left.length - right.length;
}

function compareTexts(left: string, right: string): number {
  const [a, b] = [[...left], [...right]];
  for (const [at, character] of a.entries()) {
    const other = b[at];
    if (other === undefined) return 1;
    if (character !== other) return (character.codePointAt(0) ?? 0) - (other.codePointAt(0) ?? 0);
  }
  return a.length - b.length;
}
