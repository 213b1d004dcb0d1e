package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

func TestResumeWithSettings(t *testing.T) {
	ask := func(_ context.Context, c *nodeCall) pregel.Result {
		return pregel.Result{Update: payload.JSON(`{"a":[` + c.askNext(`"?"`) + `,` + string(c.Context) + `]}`)}
	}
	w := newFixture(t, map[string]nodeFunc{"n1": ask, "n2": updateNode(`{"a":["n2"]}`), "n3": updateNode(`{"a":["n3"]}`)},
		chainSpec("g", channelsAB, "n1", "n2", "n3"))
	_, err := w.engine.Start(t.Context(), runtime.StartRequest{
		Thread: "t", CreateThread: true, Graph: "g",
		Request: checkpoint.RunRequest{Input: `{"a":[]}`, Context: `"old"`, InterruptBefore: []string{"n2"}},
	})
	require.NoError(t, err)
	run, err := w.engine.WaitRun(t.Context(), "t", "")
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunInterrupted, run.State)

	resume := func(value payload.JSON, s *runtime.RunSettings) (checkpoint.Run, error) {
		req := runtime.ResumeRequest{Thread: "t", Settings: s, Metadata: map[string]string{"by": string(value)}}
		if value != "" {
			req.Single = &runtime.Response{Value: value}
		}
		if _, err := w.engine.Resume(t.Context(), req); err != nil {
			return checkpoint.Run{}, err
		}
		return w.engine.WaitRun(t.Context(), "t", "")
	}
	_, err = resume(`1`, &runtime.RunSettings{InterruptAfter: []string{"zz"}})
	require.Equal(t, runtime.ReasonNodeNotFound, errorReason(err))

	run, err = resume(`1`, &runtime.RunSettings{Context: `"new"`, InterruptAfter: []string{"n2"}})
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunInterrupted, run.State)
	require.Equal(t, map[string]string{"by": "1"}, run.Metadata)
	require.Equal(t, run.Metadata, w.readState("t").Checkpoint.Metadata)
	require.JSONEq(t, `{"a":[1,"new","n2"]}`, w.stateValues("t"), "stops after n2 and no longer before it")

	run, err = resume("", &runtime.RunSettings{StepLimit: 1})
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunSucceeded, run.State, "%+v", run.Failure)
}
