package message

import "slices"

// Bytes of memory of a profile besides its texts, about.
const (
	sessionBytes = 1024
	textBytes    = 32 // of each text, or number in a map
)

// EstimateBytes estimates the bytes of memory of a worker's profile: of its hello and
// its credit.
func (h *Hello) EstimateBytes(credit Credit) int64 {
	n := sessionBytes + len(h.BuildID)
	for _, served := range h.Capabilities {
		n += 4*textBytes + len(served.Graph) + len(served.Version) + len(served.Node)
	}
	for name, value := range h.Labels {
		n += 2*textBytes + len(name) + len(value)
	}
	for node := range credit.PerNode {
		n += 2*textBytes + len(node)
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
