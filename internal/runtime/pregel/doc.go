// Package pregel decides what a graph does next. It is a set of pure
// functions: a state and the finished tasks go in, the next state and the next
// tasks come out. There is no clock, no I/O and no goroutine, so semantics are
// table tests and a crash point is just a place to stop calling.
//
// The rules are LangGraph's: nodes react to channels, all tasks of a superstep
// see the same state, and their writes are combined in the order of the tasks'
// paths, never in the order of completion.
package pregel
