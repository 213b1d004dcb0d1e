// Package payload reads JSON text only as deep as it must.
//
// graphd carries user values as JSON text and never re-encodes values that it only
// carries, so 9007199254740993 stays 9007199254740993. This package checks text at
// the API (validate.go), splits one level of an object or an array without touching
// its values (split.go), combines values as the reducers say (arithmetic.go,
// merge.go, messages.go), and compares texts by meaning (canonical.go,
// normal_text.go).
package payload

// JSON is one JSON value as text: any root, numbers untouched. The empty
// string means "no value", which differs from the JSON text null.
type JSON string

// Null is the JSON value null: a legal answer and a legal state value.
const Null JSON = "null"
