package transport_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/audit"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport"
)

// fakeAuditor keeps the records of calls.
type fakeAuditor struct {
	mu      sync.Mutex
	records []audit.Record
	panics  bool
}

func (a *fakeAuditor) RecordCall(r audit.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.records = append(a.records, r)
	if a.panics {
		panic("a defect")
	}
}

// take returns the records since the last call.
func (a *fakeAuditor) take() []audit.Record {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.records
	a.records = nil
	return list
}

func (a *fakeAuditor) takeOne(t *testing.T) audit.Record {
	t.Helper()
	require.Eventually(t, func() bool { // the client may have its answer before
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.records) > 0
	}, time.Minute, time.Millisecond)
	list := a.take()
	require.Len(t, list, 1)
	return list[0]
}

// oneCaller knows one token.
type oneCaller struct{}

func (oneCaller) Authenticate(_ context.Context, given identity.Credentials) (identity.Principal, error) {
	if given.Token != "good" {
		return identity.Principal{}, &identity.Error{Reason: identity.NoCredentials}
	}
	return identity.Principal{Name: "alice", Groups: []string{"ops"}, How: identity.HowJWT, Tenant: "acme", Tenants: []string{"acme"}}, nil
}

func startAudited(t *testing.T, e *fakeEngine, withReads bool) (testClient, *fakeAuditor) {
	t.Helper()
	a := &fakeAuditor{}
	return startServer(t, e, func(o *transport.Options) {
		o.Auditor, o.AuditReads, o.Authenticator = a, withReads, oneCaller{}
	}), a
}

func withToken(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer good", "x-request-id", "req-1")
}

func TestAChangeIsAudited(t *testing.T) {
	c, a := startAudited(t, newFakeEngine(), false)
	ctx := withToken(t.Context())
	_, err := c.ResumeRun(ctx, &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: "t1", Responses: []*graphdv1.InterruptResponse{{
			InterruptId: "q1", Outcome: &graphdv1.InterruptResponse_Value{Value: newJSONPayload(`{"approve": true}`)},
		}},
	}})
	require.NoError(t, err)
	r := a.takeOne(t)
	require.Equal(t, "graphd.v1.GraphService/ResumeRun", r.Method)
	require.Equal(t, audit.OutcomeOK, r.Outcome)
	require.Equal(t, []string{"alice", "jwt", "acme", "grpc", "req-1", "t1", "run-1", "g", "v1"},
		[]string{r.Principal, r.How, r.Tenant, r.Door, r.RequestID, r.Thread, r.Run, r.Graph, r.Version})
	require.Equal(t, []string{"ops"}, r.Groups)
	require.Equal(t, "q1", r.Questions[0].ID)
	require.Regexp(t, "^canonical:", r.Questions[0].Value)
	require.NotEmpty(t, r.Remote)
}

// A stream is recorded when it begins, not when it ends.
func TestAStreamIsAuditedWhenItBegins(t *testing.T) {
	c, a := startAudited(t, newFakeEngine(), false)
	ctx, cancel := context.WithCancel(withToken(t.Context()))
	defer cancel()
	s, err := c.Stream(ctx, &graphdv1.StreamRequest{Run: &graphdv1.RunSpec{ThreadId: "t1", Graph: "g", Start: &graphdv1.RunSpec_Input{Input: newJSONPayload(`{}`)}}})
	require.NoError(t, err)
	_, err = s.Recv()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.records) == 1
	}, time.Minute, time.Millisecond)
	r := a.takeOne(t)
	require.Equal(t, "graphd.v1.GraphService/Stream t1 run-1 g", r.Method+" "+r.Thread+" "+r.Run+" "+r.Graph)
	require.NotEmpty(t, r.What["run.input"])
}

func TestARefusedCallIsAudited(t *testing.T) {
	e := newFakeEngine()
	c, a := startAudited(t, e, false)
	_, err := c.DeleteThread(t.Context(), &graphdv1.DeleteThreadRequest{ThreadId: "t1"})
	require.Error(t, err)
	r := a.takeOne(t)
	require.Equal(t, []string{"refused", "UNAUTHENTICATED", "NO_CREDENTIALS", "", "t1"}, []string{string(r.Outcome), r.Code, r.Reason, r.Principal, r.Thread})

	s, err := c.Stream(t.Context(), &graphdv1.StreamRequest{Run: &graphdv1.RunSpec{ThreadId: "t1"}})
	require.NoError(t, err)
	_, err = s.Recv()
	require.Error(t, err)
	r = a.takeOne(t)
	require.Equal(t, "graphd.v1.GraphService/Stream refused", r.Method+" "+string(r.Outcome))

	_, err = c.GetState(t.Context(), &graphdv1.GetStateRequest{ThreadId: "t1"})
	require.Error(t, err)
	require.Equal(t, audit.OutcomeRefused, a.takeOne(t).Outcome, "a read that is refused")

	e.err = runtime.Errorf(runtime.ReasonAccessDenied, "no").With("rule", "binding 3")
	_, err = c.UpdateState(withToken(t.Context()), &graphdv1.UpdateStateRequest{ThreadId: "t1", Values: newJSONPayload(`{"a":1}`)})
	require.Error(t, err)
	r = a.takeOne(t)
	require.Equal(t, []string{"refused", "ACCESS_DENIED", "binding 3", "alice"}, []string{string(r.Outcome), r.Reason, r.Rule, r.Principal})
	require.Empty(t, r.What["values"])

	e.err = checkpoint.ErrThreadNotFound
	_, err = c.DeleteThread(withToken(t.Context()), &graphdv1.DeleteThreadRequest{ThreadId: "t1"})
	require.Error(t, err)
	r = a.takeOne(t)
	require.Equal(t, []string{"failed", "NOT_FOUND", "THREAD_NOT_FOUND"}, []string{string(r.Outcome), r.Code, r.Reason})

	e.err = errors.New("the cause")
	_, err = c.DeleteThread(withToken(t.Context()), &graphdv1.DeleteThreadRequest{ThreadId: "t1"})
	require.Error(t, err)
	r = a.takeOne(t)
	require.Equal(t, "INTERNAL INTERNAL", r.Code+" "+r.Reason)
}

// A request that can't be read is no call for the services, and is recorded all the same.
func TestARequestThatIsTooLargeIsAudited(t *testing.T) {
	a := &fakeAuditor{}
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.Auditor, o.MaxMessageBytes = a, 4<<10 })
	_, err := c.UpdateState(t.Context(), &graphdv1.UpdateStateRequest{ThreadId: "t1", Values: newJSONPayload(`"` + string(make([]byte, 8<<10)) + `"`)})
	require.Error(t, err)
	r := a.takeOne(t)
	require.Equal(t, "graphd.v1.ThreadService/UpdateState failed RESOURCE_EXHAUSTED", r.Method+" "+string(r.Outcome)+" "+r.Code)
}

func TestReadsAreAuditedOnRequest(t *testing.T) {
	for _, withReads := range []bool{false, true} {
		c, a := startAudited(t, newFakeEngine(), withReads)
		ctx := withToken(t.Context())
		_, err := c.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: "t1"})
		require.NoError(t, err)
		_, err = c.ListGraphs(ctx, &graphdv1.ListGraphsRequest{})
		require.NoError(t, err)
		got := slices.Collect(func(yield func(string) bool) {
			for _, r := range a.take() {
				if !yield(r.Method + " " + string(r.Outcome)) {
					return
				}
			}
		})
		if withReads {
			require.Equal(t, []string{"graphd.v1.ThreadService/GetState ok"}, got)
		} else {
			require.Empty(t, got)
		}
	}
}

func TestAnAuditThatPanicsEndsNoCall(t *testing.T) {
	c, a := startAudited(t, newFakeEngine(), false)
	a.panics = true
	_, err := c.DeleteThread(withToken(t.Context()), &graphdv1.DeleteThreadRequest{ThreadId: "t1"})
	require.NoError(t, err)
	require.Len(t, a.take(), 1)
}
