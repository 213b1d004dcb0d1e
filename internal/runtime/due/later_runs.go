package due

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// hasRunToQueue reports whether the time of a run has come that was to begin later.
func hasRunToQueue(h *checkpoint.Head) bool {
	return len(h.Later) > 0 && !h.Later[0].Begins.After(h.Now)
}

// queueLaterRuns puts the runs whose time has come behind those that wait, and goes on with what is
// due then.
func (p *Processor) queueLaterRuns(ctx context.Context, head checkpoint.Head) error {
	_, err := p.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Updated, t.Head.Queue = head.Updated, slices.Clone(head.Queue)
		for hasRunToQueue(&t.Head) {
			t.Head.Queue = append(t.Head.Queue, t.Head.Later[0].Run)
			t.Head.Later = slices.Clone(t.Head.Later[1:])
		}
		t.Head.Due = t.Now
		return nil
	})
	if err != nil {
		return err
	}
	return p.ProcessDue(ctx, head.Thread)
}
