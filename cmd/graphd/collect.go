package main

import "runtime/debug"

// heapGrowth is by how many percent the heap grows before it is collected. What
// a server holds is small, a few megabytes, and what it uses up with each
// superstep is as large as that after some hundred of them: at Go's 100 a tenth
// of the processor goes into collections that find nothing. GOMEMLIMIT bounds
// the heap as ever.
const heapGrowth = 400

// collectLess sets it, unless the operator has said otherwise.
func collectLess(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
}
