package worker_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/worker"
)

// newResultServer starts a server that takes results on the stream, and a worker of it. The channel
// gets those that come by a call.
func newResultServer(t *testing.T, f graph.Func) (*scriptedServer, *running, <-chan *graphdv1.CompleteTaskRequest) {
	t.Helper()
	called := make(chan *graphdv1.CompleteTaskRequest, 100)
	s, w := newScriptedServer(t, func(s *scriptedServer) {
		s.welcome = func(*graphdv1.Hello) *graphdv1.Welcome {
			welcome := newWelcome()
			welcome.Features = append(welcome.Features, "complete")
			return welcome
		}
		s.complete = func(r *graphdv1.CompleteTaskRequest) (*graphdv1.CompleteTaskResponse, error) {
			called <- r
			return &graphdv1.CompleteTaskResponse{}, nil
		}
	}, worker.Options{Graphs: []*graph.Builder{oneNode("g", f)}})
	return s, w, called
}

// hearResult returns the next result that comes on the stream.
func hearResult(t *testing.T, s *scriptedServer) *graphdv1.CompleteTaskRequest {
	t.Helper()
	return hear(t, s, func(r *graphdv1.ConnectRequest) (*graphdv1.CompleteTaskRequest, bool) {
		return r.GetComplete(), r.GetComplete() != nil
	})
}

func answerResult(c *graphdv1.Completed) *graphdv1.ConnectResponse {
	return &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Completed{Completed: c}}
}

func TestResultsGoOnTheStream(t *testing.T) {
	s, w, called := newResultServer(t, update(`{"a":1}`))
	s.say <- assign(newTask("one"))
	first := hearResult(t, s)
	require.Equal(t, "one", string(first.GetLeaseToken()))
	require.JSONEq(t, `{"a":1}`, first.GetResult().GetCompleted().GetUpdate().GetJson())
	require.True(t, first.GetTakeNext())
	s.say <- answerResult(&graphdv1.Completed{LeaseToken: []byte("another")}) // is ignored
	s.say <- answerResult(&graphdv1.Completed{
		LeaseToken: []byte("one"), Response: &graphdv1.CompleteTaskResponse{Next: newTask("two")},
	})
	require.Equal(t, "two", string(hearResult(t, s).GetLeaseToken()))
	s.say <- answerResult(&graphdv1.Completed{LeaseToken: []byte("two")})
	require.NoError(t, w.stop())
	require.Empty(t, called)
}

func TestAResultThatTheStreamDoesNotTakeGoesByACall(t *testing.T) {
	t.Run("it is refused", func(t *testing.T) {
		s, w, called := newResultServer(t, update(`{"a":1}`))
		s.say <- assign(newTask("one"))
		hearResult(t, s)
		s.say <- answerResult(&graphdv1.Completed{LeaseToken: []byte("one"), Reason: "TOO_MANY_REQUESTS"})
		require.Equal(t, "one", string(receive(t, called, "a call").GetLeaseToken()))
		require.NoError(t, w.stop())
	})
	t.Run("the stream ends before it is answered", func(t *testing.T) {
		s, w, called := newResultServer(t, update(`{"a":1}`))
		s.say <- assign(newTask("one"))
		hearResult(t, s)
		s.say <- nil
		require.Equal(t, "one", string(receive(t, called, "a call").GetLeaseToken()))
		require.NoError(t, w.stop())
	})
	t.Run("it is large", func(t *testing.T) {
		s, w, called := newResultServer(t, update(`{"a":"`+strings.Repeat("x", 64<<10)+`"}`))
		s.say <- assign(newTask("one"))
		require.Equal(t, "one", string(receive(t, called, "a call").GetLeaseToken()))
		require.NoError(t, w.stop())
	})
}

func TestALostTaskWhoseResultWaitsIsNoTaskAnyMore(t *testing.T) {
	s, w, called := newResultServer(t, update(`{"a":1}`))
	s.say <- assign(newTask("one"))
	hearResult(t, s)
	s.loseLease("one")
	require.NoError(t, w.stop())
	s.say <- answerResult(&graphdv1.Completed{LeaseToken: []byte("one")})
	require.Empty(t, called)
}
