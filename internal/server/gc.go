package server

import "runtime/debug"

// gcPercent is the growth of the heap, in percent, before it is collected. A server
// holds little, a few megabytes, and some hundred supersteps allocate as much. At
// Go's 100, collections that free nothing take a tenth of the processor. GOMEMLIMIT
// still bounds the heap.
const gcPercent = 400

// raiseGCPercent sets gcPercent, unless the operator sets GOGC.
func raiseGCPercent(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
