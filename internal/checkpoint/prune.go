package checkpoint

import (
	"slices"
	"strings"
)

// SelectPruned selects the checkpoints that DropBefore removes from all checkpoints
// of a thread. It reads only ID, Seq and Namespace.
func (c *Change) SelectPruned(all []*Checkpoint) (gone, left []*Checkpoint) {
	newest := make(map[string]uint64)
	for _, cp := range all {
		if !strings.Contains(cp.Namespace, ":") {
			newest[cp.Namespace] = max(newest[cp.Namespace], cp.Seq)
		}
	}
	for _, cp := range all {
		if cp.Seq >= c.DropBefore || cp.Seq == newest[cp.Namespace] || slices.Contains(c.KeepCheckpoints, cp.ID) {
			left = append(left, cp)
		} else {
			gone = append(gone, cp)
		}
	}
	return gone, left
}
