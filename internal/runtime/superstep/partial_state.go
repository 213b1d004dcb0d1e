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
func (s *superstep) partialState() *pregel.State {
	done := s.finishedWrites()
	for _, x := range s.previewWrites {
		done = pregel.ReplaceWrites(done, x.Channel, x.Value)
	}
	state := s.frame.state
	for _, r := range state.Reductions(done) { // these are not reduced
		done = pregel.DropWrites(done, r.Channel)
	}
	next, err := state.PartialState(done)
	if err != nil {
		return state
	}
	return next
}

// reducePartial has workers combine the writes of the finished tasks of a superstep that
// is not over. Without a worker readers see the state without them.
func (s *superstep) reducePartial(ctx context.Context) {
	fr := s.frame
	reducers := reducerCaller{frame: fr}
	for _, r := range fr.state.Reductions(s.finishedWrites()) {
		if value, f := reducers.callReducer(ctx, r); f == nil {
			s.previewWrites = append(s.previewWrites, checkpoint.Write{Channel: r.Channel, Value: value})
		}
	}
}

// putPreview adds that record to a change.
func (s *superstep) putPreview(t *commit.Tx) {
	fr := s.frame
	if len(s.previewWrites) == 0 {
		return
	}
	t.Tasks = append(t.Tasks, checkpoint.Task{
		ID: previewID, Namespace: fr.state.Namespace(), Checkpoint: fr.state.Checkpoint().ID,
		State: checkpoint.TaskDone, Writes: s.previewWrites, Attempt: len(s.finishedWrites()),
	})
}

// loadPreview loads the combined writes of the tasks that are finished now.
func (s *superstep) loadPreview(p *progress) {
	if p.preview != nil && p.preview.Attempt == len(s.finishedWrites()) {
		s.previewWrites = p.preview.Writes
	}
}
