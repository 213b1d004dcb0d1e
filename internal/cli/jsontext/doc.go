// Package jsontext writes messages as JSON and splits JSON text. No value is
// decoded, so numbers, escapes and the order of keys stay unchanged.
package jsontext
