// Package inbox holds what workers have sent and runs have not taken yet: events, in
// order and within a budget of bytes, and the bytes of results.
package inbox
