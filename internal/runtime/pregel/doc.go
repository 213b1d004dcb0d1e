// Package pregel decides the next superstep of a graph. Its functions are
// pure: they take a state and the finished tasks, and return the next state
// and the next tasks. There is no clock, no I/O and no goroutine. So tables
// test the semantics, and a test of a crash stops calling.
//
// The rules are LangGraph's: nodes react to channels, all tasks of a superstep
// see the same state, and their writes are combined in the order of the tasks'
// paths, never in the order of completion.
//
// One superstep after another: PlanTasks lists the due tasks (plan.go); CompleteTask
// turns the result of a task into writes, its conditional edges included (writes.go,
// branches.go); ApplyStep combines the writes of all tasks with the state, channel
// by channel (state_edit.go, channel_edit.go), and makes the next checkpoint of it
// (next_checkpoint.go).
package pregel
