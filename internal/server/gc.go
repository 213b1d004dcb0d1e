package server

import "runtime/debug"

// gcPercent is by how many percent the heap grows before it is collected. What
// a server holds is small, a few megabytes, and what it uses up with each
// superstep is as large as that after some hundred of them: at Go's 100 a tenth
// of the processor goes into collections that find nothing. GOMEMLIMIT bounds
// the heap as ever.
const gcPercent = 400

// raiseGCPercent sets gcPercent, unless the operator sets GOGC.
func raiseGCPercent(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
