// Package pregel decides what a graph does next. It is a set of pure
// functions: a state and the finished tasks go in, the next state and the next
// tasks come out. There is no clock, no I/O and no goroutine, so semantics are
// table tests and a crash point is just a place to stop calling.
//
// The rules are LangGraph's: nodes react to channels, all tasks of a superstep
// see the same state, and their writes are combined in the order of the tasks'
// paths, never in the order of completion.
//
// One superstep after another: PlanTasks lists what is due (plan.go); CompleteTask
// turns the result of a task into writes, its conditional edges included (writes.go,
// branches.go); ApplyStep combines the writes of all tasks with the state, channel
// by channel (state_edit.go, channel_edit.go), and makes the next checkpoint of it
// (next_checkpoint.go).
package pregel
