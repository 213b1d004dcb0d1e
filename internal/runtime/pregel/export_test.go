package pregel

// ChannelSizes returns the sizes of the channels of a state, and their sum.
func ChannelSizes(s *State) []int64 {
	all := []int64{s.size.total}
	for i := range s.graph.Channels {
		all = append(all, s.size.sizeAt(&s.values, i))
	}
	return all
}
