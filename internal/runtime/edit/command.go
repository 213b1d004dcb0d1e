package edit

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// PutCommand puts an update and gotos into a change, for the server that goes on with
// the run of the thread. reader may show the thread as it was when the change was
// decided. Errors: those of runtime.TranslateStoreError, of runtime.Graphs and of
// superstep.RefusalError, and those of Reader.RetryLargeRead while there is no memory
// for the state.
func (e *Editor) PutCommand(ctx context.Context, reader *query.Reader, t *commit.Tx, update payload.JSON, to []checkpoint.Send) error {
	run, err := reader.StoredRun(ctx, t.Thread, t.Head.Run)
	if err != nil {
		return runtime.TranslateStoreError(err)
	}
	g, err := reader.FindGraph(run.Graph, run.Version)
	if err != nil {
		return err
	}
	memory := e.budget.NewReservation()
	defer memory.ReleaseAll()
	var state *pregel.State
	var p checkpoint.Pending
	err = reader.RetryLargeRead(ctx, &memory, runtime.ReadWaitTimeout, func() error {
		loaded, err := reader.LoadState(ctx, &memory, &t.Head, g)
		if err != nil {
			return err
		}
		if p, err = reader.ReadPending(ctx, &memory, t.Thread, loaded.Checkpoint().ID); err != nil {
			return err // without the state, which is not held while memory is waited for
		}
		state = loaded
		return nil
	})
	if err != nil {
		return err
	}
	memory.ReleaseUnused()
	return e.newEdit(t.Thread, &run, state, true).StoreCommand(t, p, update, to)
}
