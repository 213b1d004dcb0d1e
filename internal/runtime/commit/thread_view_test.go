package commit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// errAsked says that the store was asked for a record.
var errAsked = errors.New("the store was asked")

// viewStore shows one view of a thread, and fails with errAsked for single records.
type viewStore struct {
	checkpoint.Store

	view checkpoint.ThreadView
}

func (s *viewStore) ViewThread(context.Context, string, string) (*checkpoint.ThreadView, error) {
	return &s.view, nil
}

func (*viewStore) Checkpoint(context.Context, string, string, string) (*checkpoint.Checkpoint, error) {
	return nil, errAsked
}

func (*viewStore) Pending(context.Context, string, string) (checkpoint.Pending, error) {
	return checkpoint.Pending{}, errAsked
}

func (*viewStore) Run(context.Context, string, string) (checkpoint.Run, error) {
	return checkpoint.Run{}, errAsked
}

func (*viewStore) Interrupt(context.Context, string, string) (checkpoint.Interrupt, error) {
	return checkpoint.Interrupt{}, errAsked
}

func (*viewStore) Interrupts(context.Context, checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	return nil, errAsked
}

func (*viewStore) Request(context.Context, string, string) (checkpoint.Request, error) {
	return checkpoint.Request{}, errAsked
}

// TestThreadView reads each record through a view: of the viewed thread, of another
// thread, and of a snapshot that has the head alone.
func TestThreadView(t *testing.T) {
	head := checkpoint.Head{Thread: "t", Run: "r", Checkpoint: "c"}
	full := checkpoint.ThreadView{
		Head: head, Run: &checkpoint.Run{ID: "r"}, Checkpoint: &checkpoint.Checkpoint{ID: "c"}, Pending: &checkpoint.Pending{},
		Interrupts: &[]checkpoint.Interrupt{{ID: "i"}}, Requests: map[string]*checkpoint.Request{"q": {ID: "q"}, "new": nil},
	}
	read := func(t *testing.T, from checkpoint.ThreadView, thread string) map[string]error {
		t.Helper()
		var seen checkpoint.Head
		v, err := commit.NewStoreClient(&viewStore{view: from}, 1, time.Minute, time.Now).ViewThread(t.Context(), "t", "q", &seen)
		require.NoError(t, err)
		require.Equal(t, head, seen)
		out := map[string]error{}
		_, out["checkpoint"] = v.Checkpoint(t.Context(), thread, "", "c")
		_, out["checkpoint within"] = v.ReadCheckpointWithin(t.Context(), thread, "", "c", 1)
		_, out["pending"] = v.Pending(t.Context(), thread, "c")
		_, out["run"] = v.Run(t.Context(), thread, "r")
		_, out["interrupt"] = v.Interrupt(t.Context(), thread, "i")
		_, out["interrupts"] = v.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: thread})
		_, out["request"] = v.Request(t.Context(), thread, "q")
		return out
	}
	for name, err := range read(t, full, "t") {
		require.NoError(t, err, name)
	}
	for name, err := range read(t, full, "another") {
		require.ErrorIs(t, err, errAsked, name)
	}
	for name, err := range read(t, checkpoint.ThreadView{Head: head}, "t") {
		require.ErrorIs(t, err, errAsked, name)
	}

	var seen checkpoint.Head
	v, err := commit.NewStoreClient(&viewStore{view: full}, 1, time.Minute, time.Now).ViewThread(t.Context(), "t", "q", &seen)
	require.NoError(t, err)
	_, err = v.Interrupt(t.Context(), "t", "none")
	require.ErrorIs(t, err, checkpoint.ErrInterruptNotFound)
	_, err = v.Request(t.Context(), "t", "new")
	require.ErrorIs(t, err, checkpoint.ErrRequestNotFound)
	_, err = v.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: "t", Reason: "x"})
	require.ErrorIs(t, err, errAsked, "the query selects by more than the state")
}
