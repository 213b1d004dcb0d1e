// Package syntax works on the syntax trees of expressions, before they are checked
// and before they become programs: it refuses types that are nested too deeply,
// finds the state keys that are named, and rewrites operations that CEL would
// compute in another way than people expect of JSON.
package syntax
