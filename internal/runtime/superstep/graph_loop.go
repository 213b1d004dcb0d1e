package superstep

// graphLoop drives one graph of a run, superstep by superstep: the root graph, or a
// subgraph inside a task. Tasks and changes see its frame alone.
type graphLoop struct {
	frame

	beginsWithCopy bool // it begins with a copy of the checkpoint in state
	isBranched     bool // it has begun with one, and shown it
	// isWithinSuperstep is set when the superstep goes on, because answers have come while
	// it ran.
	isWithinSuperstep bool
}
