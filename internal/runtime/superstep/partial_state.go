package superstep

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// partialState returns the state with the writes of the finished tasks of a superstep
// that is not over, for readers while a sibling waits. It returns the state itself when
// the writes do not fit together.
func (w *superstep) partialState() *pregel.State {
	done := w.finishedWrites()
	for _, x := range w.previewWrites {
		done = pregel.ReplaceWrites(done, x.Channel, x.Value)
	}
	s := w.frame.state
	for _, r := range s.Reductions(done) { // these are not reduced
		done = pregel.DropWrites(done, r.Channel)
	}
	next, err := s.PartialState(done)
	if err != nil {
		return s
	}
	return next
}

// reducePartial has workers combine the writes of the finished tasks of a superstep that
// is not over. Without a worker readers see the state without them.
func (w *superstep) reducePartial(ctx context.Context) {
	fr := w.frame
	reducers := reducerCaller{frame: fr}
	for _, r := range fr.state.Reductions(w.finishedWrites()) {
		if value, f := reducers.callReducer(ctx, r); f == nil {
			w.previewWrites = append(w.previewWrites, checkpoint.Write{Channel: r.Channel, Value: value})
		}
	}
}

// putPreview adds that record to a change.
func (w *superstep) putPreview(t *commit.Tx) {
	fr := w.frame
	if len(w.previewWrites) == 0 {
		return
	}
	t.Tasks = append(t.Tasks, checkpoint.Task{
		ID: previewID, Namespace: fr.state.Namespace(), Checkpoint: fr.state.Checkpoint().ID,
		State: checkpoint.TaskDone, Writes: w.previewWrites, Attempt: len(w.finishedWrites()),
	})
}

// loadPreview loads the combined writes of the tasks that are finished now.
func (w *superstep) loadPreview(p *progress) {
	if p.preview != nil && p.preview.Attempt == len(w.finishedWrites()) {
		w.previewWrites = p.preview.Writes
	}
}
