package pregel

// Sizes are the sizes of the channels of a state, and of all of them.
func Sizes(s *State) []int64 {
	all := []int64{s.total}
	for i := range s.graph.Channels {
		all = append(all, s.size(i))
	}
	return all
}
