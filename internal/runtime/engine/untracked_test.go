package engine_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// recordingStore notes everything that a store is given to keep.
type recordingStore struct {
	checkpoint.Store
	mu   sync.Mutex
	text string
}

func (r *recordingStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	kept := *c
	kept.Runs = nil // an output names the keys that its caller is to see
	text, err := json.Marshal(kept)
	if err != nil {
		return checkpoint.Receipt{}, err
	}
	r.mu.Lock()
	r.text += string(text)
	r.mu.Unlock()
	return r.Store.Apply(ctx, c)
}

// What an untracked key holds reaches the nodes and the followers, and nothing of
// it reaches the store: not with a checkpoint, a Send, an event, nor with what a
// finished sibling of an interrupt leaves behind.
func TestUntrackedIsNeverStored(t *testing.T) {
	spec := chainSpec("g", []graph.ChannelSpec{{Name: "u", Reducer: "untracked"}, {Name: "l", Reducer: "append"}}, "login")
	spec.Nodes = append(spec.Nodes, functionNode("work"), functionNode("ask"))
	spec.Edges = append(spec.Edges, newEdge("login", "ask"))
	spec.Branches = []graph.BranchSpec{{From: "login", Router: "share"}}
	var seen sync.Map
	w := newFixture(t, map[string]nodeFunc{
		"login": updateNode(`{"u":"s3cret"}`),
		"share": func(context.Context, *nodeCall) pregel.Result {
			return pregel.Result{Goto: []checkpoint.Send{{Node: "work", Input: `{"u":"s3cret send","l":[1]}`}}}
		},
		"work": func(_ context.Context, c *nodeCall) pregel.Result {
			seen.Store("send", c.stateText("u"))
			return pregel.Result{Update: `{"u":"s3cret too","l":["done"]}`}
		},
		"ask": func(_ context.Context, c *nodeCall) pregel.Result {
			seen.Store("state", c.stateText("u"))
			return pregel.Result{Update: payload.JSON(`{"l":[` + c.askNext(`"ok?"`) + `]}`)}
		},
	}, spec)
	store := &recordingStore{Store: memory.New(memory.Options{})}
	w.store = store
	w.startEngine()

	require.Equal(t, checkpoint.RunInterrupted, w.runToStop("t", "g", `{}`).State)
	state, _ := seen.Load("state")
	send, _ := seen.Load("send")
	require.Equal(t, `"s3cret"`, state)
	require.Equal(t, `"s3cret send"`, send)
	require.JSONEq(t, `{"l":["done"]}`, w.stateValues("t"))
	require.Equal(t, checkpoint.RunSucceeded, w.answerSingle("t", `"yes"`).State)
	require.JSONEq(t, `{"l":["yes","done"]}`, w.stateValues("t"))
	require.Contains(t, store.text, "done")
	require.NotContains(t, store.text, "s3cret")
}
