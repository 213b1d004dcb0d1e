package pregel

import "slices"

// pushTrigger stands for a Send among the triggers of a task.
const pushTrigger = "__pregel_push"

// Triggers names, in order, the channels that a planned task waits on. Like
// LangGraph it names all of them, not just those that were written.
func (s *State) Triggers(t *Task) []string {
	if t.IsPush {
		return []string{pushTrigger}
	}
	names := make([]string, len(t.Node.Triggers))
	for i, c := range t.Node.Triggers {
		names[i] = s.graph.Channels[c].Name
	}
	slices.Sort(names)
	return names
}
