package runtime

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// partial is the state with the writes of the finished tasks of a superstep
// that is not over: what people see while a sibling waits. It is the state
// itself when the writes do not fit together.
func (w *work) partial() *pregel.State {
	done := w.done()
	for _, x := range w.preview {
		done = pregel.Reduced(done, x.Channel, x.Value)
	}
	s := w.loop.state
	for _, r := range s.Reductions(done) { // nobody has combined these
		done = pregel.Without(done, r.Channel)
	}
	next, err := s.Partial(done)
	if err != nil {
		return s
	}
	return next
}

// foretell has workers combine what the finished tasks of a superstep have
// written that is not over. Without a worker people see the state without it.
func (l *loop) foretell(ctx context.Context, w *work) {
	for _, r := range l.state.Reductions(w.done()) {
		if value, f := l.reduce(ctx, r, false); f == nil {
			w.preview = append(w.preview, checkpoint.Write{Channel: r.Channel, Value: value})
		}
	}
}

// previewID is the id of the task record that keeps what workers have combined
// for people to see, so that reading a state needs no worker. It holds for the
// number of finished tasks that its Attempt names.
const previewID = "!preview"

// keepPreview adds that record to a change.
func (l *loop) keepPreview(t *tx, w *work) {
	if len(w.preview) == 0 {
		return
	}
	t.Tasks = append(t.Tasks, checkpoint.Task{
		ID: previewID, Namespace: l.state.Namespace(), Checkpoint: l.state.Checkpoint().ID,
		State: checkpoint.TaskDone, Writes: w.preview, Attempt: len(w.done()),
	})
}

// recallPreview takes up what was combined for the tasks that are finished now.
func (w *work) recallPreview(p *progress) {
	if p.preview != nil && p.preview.Attempt == len(w.done()) {
		w.preview = p.preview.Writes
	}
}
