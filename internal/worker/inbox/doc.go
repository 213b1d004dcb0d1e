// Package inbox holds events and results of workers that their runs have not taken
// yet: the events in order and within a budget of bytes, and the sizes of the
// results.
package inbox
