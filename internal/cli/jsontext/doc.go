// Package jsontext writes messages as JSON and takes JSON text apart. Numbers, spellings
// and the order of keys stay what they are: no value is decoded.
package jsontext
