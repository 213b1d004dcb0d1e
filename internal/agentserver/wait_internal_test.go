package agentserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// longRun is a run that takes longer than the call that begins it waits.
type longRun struct {
	graphdv1.GraphServiceClient

	answer *httptest.ResponseRecorder
	t      *testing.T
}

func (r longRun) StartRun(_ context.Context, q *graphdv1.StartRunRequest, _ ...grpc.CallOption) (*graphdv1.Run, error) {
	require.LessOrEqual(r.t, q.GetWait().AsDuration(), time.Second)
	return &graphdv1.Run{ThreadId: "t", RunId: q.GetRun().GetRunId(), State: graphdv1.RunState_RUN_STATE_RUNNING, Metadata: q.GetRun().GetMetadata()}, nil
}

// WaitRun requires that the client knows where the run is.
func (r longRun) WaitRun(context.Context, *graphdv1.WaitRunRequest, ...grpc.CallOption) (*graphdv1.Run, error) {
	require.True(r.t, r.answer.Flushed)
	require.Equal(r.t, http.StatusOK, r.answer.Code)
	require.Regexp(r.t, "^/threads/t/runs/.+/join$", r.answer.Header().Get("Location"))
	return nil, context.Canceled // the test has seen it
}

func TestAClientThatWaitsLearnsWhereTheRunIs(t *testing.T) {
	w := httptest.NewRecorder()
	c := &call{ctx: t.Context(), w: w, server: New(Options{StallTimeout: time.Minute}), graphs: longRun{answer: w, t: t}}
	p := &plan{thread: "t", request: &runRequest{}, assistant: &chosenAssistant{graph: "g"}}
	require.NoError(t, p.planStart("g"))
	require.ErrorIs(t, p.waitForEnd(c), errBrokenOff)
}
