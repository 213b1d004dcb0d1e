package message

import "slices"

// EstimateBytes estimates the bytes of memory of a worker's profile.
func (h *Hello) EstimateBytes(c Credit) int64 {
	const session, text = 1024, 32
	n := session + len(h.BuildID)
	for _, x := range h.Capabilities {
		n += 4*text + len(x.Graph) + len(x.Version) + len(x.Node)
	}
	for k, v := range h.Labels {
		n += 2*text + len(k) + len(v)
	}
	for k := range c.PerNode {
		n += 2*text + len(k)
	}
	return int64(n)
}

// ListNodes lists the nodes that the worker runs, as GRAPH/NODE.
func (h *Hello) ListNodes() []string {
	var nodes []string
	for _, x := range h.Capabilities {
		node := x.Node
		if node == "" {
			node = "*"
		}
		nodes = append(nodes, x.Graph+"/"+node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}
