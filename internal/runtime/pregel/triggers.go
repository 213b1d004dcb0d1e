package pregel

// pushTrigger stands for a Send among the triggers of a task.
const pushTrigger = "__pregel_push"

// Triggers names the channels that made a planned task due.
func (s *State) Triggers(t *Task) []string {
	if t.Push {
		return []string{pushTrigger}
	}
	var names []string
	for _, i := range t.Node.Triggers {
		c := &s.cp.Channels[i]
		if c.Version > 0 && available(&s.graph.Channels[i], c) && c.Version > s.seenVersion(t.Node.Name, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}
