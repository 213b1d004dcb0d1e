// How people are called in the page.

/** Returns a short name of a principal: the part before @, without the kind before ":". */
export function shortName(principal: string): string {
  const name = principal.replace(/^[a-z-]+:/, "").replace(/@.*$/, "");
  return name.charAt(0).toLocaleUpperCase() + name.slice(1);
}

/** Returns an angle of colour that stays the same for a principal. */
export function hueOf(principal: string): number {
  let hash = 0;
  for (const c of principal) hash = (hash * 31 + c.codePointAt(0)!) % 360;
  return hash;
}

/** Returns "the graph" for what no person did. */
export function nameActor(principal: string | undefined): string {
  return principal ? shortName(principal) : "The graph";
}
