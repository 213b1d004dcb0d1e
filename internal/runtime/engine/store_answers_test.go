package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// viewingStore is a store that shows a thread at once, as Redis does.
type viewingStore struct{ checkpoint.Store }

func (s viewingStore) ViewThread(ctx context.Context, thread, request string) (*checkpoint.ThreadView, error) {
	return buildThreadView(ctx, s.Store, thread, request)
}

// TestStoredAnswersShowTheRunAsItIsThen stores answers without going on with the run:
// because others are missing, and because the server is full.
func TestStoredAnswersShowTheRunAsItIsThen(t *testing.T) {
	for name, open := range map[string]func() checkpoint.Store{
		"records":       func() checkpoint.Store { return memory.New(memory.Options{}) },
		"a thread view": func() checkpoint.Store { return viewingStore{memory.New(memory.Options{})} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				proceed := make(chan struct{})
				ask := func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"?"`)) }
				w := newFixtureOn(t, open(), engine.Options{MaxLiveRuns: 1}, map[string]nodeFunc{
					"one": ask, "two": ask, "join": updateNode(`{"log":["join"]}`),
					"work": func(context.Context, *nodeCall) pregel.Result {
						<-proceed
						return logUpdate(`"worked"`)
					},
				}, parallelSpec("asks", "one", "two"), chainSpec("works", channelsLog, "work"))
				require.Equal(t, checkpoint.RunInterrupted, w.runToStop("t", "asks", `{}`).State)
				synctest.Wait()
				labels := map[string]string{"by": "first"}
				questions := w.readState("t").Interrupts
				require.Len(t, questions, 2)
				resume := func(i int) checkpoint.Run {
					st, err := w.engine.Resume(t.Context(), runtime.ResumeRequest{
						Thread: "t", Coverage: runtime.CoverCollect, Metadata: labels,
						Responses: []runtime.Response{{Interrupt: questions[i].ID, Value: `"yes"`}},
					})
					require.NoError(t, err)
					stored, err := w.store.Run(t.Context(), "t", st.Run.ID)
					require.NoError(t, err)
					require.Equal(t, stored, st.Run)
					require.Equal(t, labels, st.Run.Metadata)
					return st.Run
				}
				require.Equal(t, checkpoint.RunInterrupted, resume(0).State)

				full, err := w.engine.Start(t.Context(), runtime.StartRequest{Thread: "full", CreateThread: true, Graph: "works", Request: newInput("x")})
				require.NoError(t, err)
				synctest.Wait()
				labels = map[string]string{"by": "second"}
				require.Equal(t, checkpoint.RunQueued, resume(1).State)
				close(proceed)
				require.Equal(t, checkpoint.RunSucceeded, w.waitRun(full).State)
				sleepVirtual(time.Minute)
				run, err := w.engine.Run(t.Context(), nil, "t", "")
				require.NoError(t, err)
				require.Equal(t, checkpoint.RunSucceeded, run.State)
				require.Equal(t, labels, run.Metadata)
			})
		})
	}
}
