package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/access"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport"
	"github.com/graphd-dev/graphd/internal/worker"
)

// fakeAuthenticator knows the principals of some tokens.
type fakeAuthenticator struct {
	panics bool
}

func (a fakeAuthenticator) Authenticate(_ context.Context, given identity.Credentials) (identity.Principal, error) {
	if a.panics {
		panic("the authenticator is broken")
	}
	name, ok := strings.CutPrefix(given.Token, "token-of-")
	switch {
	case ok:
		return identity.Principal{Name: name, How: identity.HowJWT}, nil
	case given.Token == "no-keys":
		return identity.Principal{}, &identity.Error{Reason: identity.KeysUnavailable}
	case given.Token != "":
		return identity.Principal{}, &identity.Error{Reason: identity.TokenMalformed, Field: "header"}
	}
	return identity.Principal{}, &identity.Error{Reason: identity.NoCredentials}
}

func withCallers(o *transport.Options) { o.Authenticator = fakeAuthenticator{} }

// withHeaders returns a context that sends each value as an authorization header.
func withHeaders(t *testing.T, values ...string) context.Context {
	t.Helper()
	md := metadata.MD{}
	for _, v := range values {
		md.Append("authorization", v)
	}
	return metadata.NewOutgoingContext(t.Context(), md)
}

// callMethod calls a method of any kind with an empty request, and returns the error
// of the first answer.
func callMethod(ctx context.Context, t *testing.T, conn *grpc.ClientConn, method string) error {
	t.Helper()
	return callMethodWith(ctx, t, conn, method, &emptypb.Empty{})
}

// callMethodWith calls a method of any kind, and returns the error of the first answer.
func callMethodWith(ctx context.Context, t *testing.T, conn *grpc.ClientConn, method string, request proto.Message) error {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	require.NoError(t, err)
	if err := s.SendMsg(request); !errors.Is(err, io.EOF) { // refused already: RecvMsg has the error
		require.NoError(t, err)
	}
	require.NoError(t, s.CloseSend())
	return s.RecvMsg(&emptypb.Empty{})
}

func TestCallsNeedCredentials(t *testing.T) {
	hub := worker.New(worker.Options{Key: []byte("key")})
	defer hub.Close()
	c := startServer(t, newFakeEngine(), withCallers, func(o *transport.Options) { o.Hub = hub })
	served := 0
	for _, row := range access.Methods() {
		err := callMethod(t.Context(), t, c.conn, row.Method)
		switch row.Scope {
		case access.ScopeEndpoint:
			require.Equal(t, codes.Unimplemented, status.Code(err), row.Method)
		case access.ScopeOpen:
			require.NoError(t, err, row.Method)
			served++
		default:
			require.Equal(t, codes.Unauthenticated, status.Code(err), row.Method)
			require.Equal(t, "NO_CREDENTIALS", requireErrorInfo(t, err).GetReason(), row.Method)
		}
	}
	require.Equal(t, 3, served)
}

// A client without credentials does not learn what is wrong with its request.
func TestCredentialsAreCheckedBeforeRequests(t *testing.T) {
	c := startServer(t, newFakeEngine(), withCallers)
	wrong := &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{Concurrency: 99}}
	_, err := c.StartRun(t.Context(), wrong)
	require.Equal(t, "NO_CREDENTIALS", requireErrorInfo(t, err).GetReason())
	_, err = c.StartRun(withHeaders(t, "Bearer token-of-ana"), wrong)
	require.Equal(t, "INVALID_FIELD", requireErrorInfo(t, err).GetReason())
	c = startServer(t, newFakeEngine(), func(o *transport.Options) { o.Authenticator = fakeAuthenticator{panics: true} })
	_, err = c.StartRun(t.Context(), wrong)
	require.Equal(t, "INTERNAL", requireErrorInfo(t, err).GetReason())
}

func TestOneHeaderHasTheToken(t *testing.T) {
	counted := newRefusalCounts()
	c := startServer(t, newFakeEngine(), withCallers, func(o *transport.Options) { o.RefusalMetrics = counted })
	for name, test := range map[string]struct {
		headers []string
		reason  string // "" = accepted
	}{
		"bearer":          {[]string{"Bearer token-of-ana"}, ""},
		"in another case": {[]string{"bEARER token-of-ana"}, ""},
		"two headers":     {[]string{"Bearer token-of-ana", "Bearer token-of-ana"}, "TOKEN_INVALID"},
		"another scheme":  {[]string{"Basic token-of-ana"}, "TOKEN_INVALID"},
		"no scheme":       {[]string{"token-of-ana"}, "TOKEN_INVALID"},
		"no token":        {[]string{"Bearer "}, "TOKEN_INVALID"},
		"empty":           {[]string{""}, "TOKEN_INVALID"},
		"two spaces":      {[]string{"Bearer  token-of-ana"}, "TOKEN_MALFORMED"},
		"a refused token": {[]string{"Bearer hunter2"}, "TOKEN_MALFORMED"},
		"a refused too":   {[]string{"Basic hunter2"}, "TOKEN_INVALID"},
	} {
		t.Run(name, func(t *testing.T) {
			before := counted.calls[test.reason]
			ctx := withHeaders(t, test.headers...)
			_, unary := c.GetServerInfo(ctx, &graphdv1.GetServerInfoRequest{})
			streamed := callMethod(ctx, t, c.conn, "/graphd.v1.GraphService/Watch")
			if test.reason == "" {
				require.NoError(t, unary)
				require.NotEqual(t, codes.Unauthenticated, status.Code(streamed))
				return
			}
			for _, err := range []error{unary, streamed} {
				require.Equal(t, codes.Unauthenticated, status.Code(err))
				require.Equal(t, test.reason, requireErrorInfo(t, err).GetReason())
				require.NotContains(t, err.Error(), "hunter2")
			}
			require.Equal(t, before+2, counted.calls[test.reason])
		})
	}
}

func TestKeysThatAreAwayAskToRetry(t *testing.T) {
	c := startServer(t, newFakeEngine(), withCallers)
	_, err := c.GetServerInfo(withHeaders(t, "Bearer no-keys"), &graphdv1.GetServerInfoRequest{})
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Equal(t, "KEYS_UNAVAILABLE", requireErrorInfo(t, err).GetReason())
	_, isRetry := status.Convert(err).Details()[1].(*errdetails.RetryInfo)
	require.True(t, isRetry)
}

func TestServerInfoSaysWhoCalls(t *testing.T) {
	got, err := startServer(t, newFakeEngine(), withCallers).GetServerInfo(withHeaders(t, "Bearer token-of-ana"), &graphdv1.GetServerInfoRequest{})
	require.NoError(t, err)
	require.Equal(t, []string{"ana", "default"}, []string{got.GetCaller().GetPrincipal(), got.GetCaller().GetTenant()})
}

func TestTheCallerIsPassedOn(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	e := newFakeEngine()
	c := startServer(t, e, withCallers, func(o *transport.Options) { o.Log = zap.New(core) })
	_, err := c.CreateThread(withHeaders(t, "Bearer token-of-ana"), &graphdv1.CreateThreadRequest{})
	require.NoError(t, err)
	created, ok := e.lastRequest(t).(runtime.CreateThreadRequest)
	require.True(t, ok)
	require.Equal(t, runtime.Actor{Name: "ana", How: "jwt", Method: "graphd.v1.ThreadService/CreateThread"}, created.By)
	_, err = c.StartRun(withHeaders(t, "Bearer token-of-ben"), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{}})
	require.NoError(t, err)
	started, ok := e.lastRequest(t).(runtime.StartRequest)
	require.True(t, ok)
	require.Equal(t, runtime.Actor{Name: "ben", How: "jwt", Method: "graphd.v1.GraphService/StartRun"}, started.By)
	_, err = c.CreateThread(withHeaders(t, "Bearer forged"), &graphdv1.CreateThreadRequest{})
	require.Error(t, err)
	lines := logs.FilterMessage("finished call").All()
	require.Equal(t, "ana", lines[0].ContextMap()["principal"])
	refused := lines[len(lines)-1].ContextMap()
	require.Equal(t, "TOKEN_MALFORMED", refused["reason"])
	require.NotContains(t, refused, "principal")
	require.NotContains(t, fmt.Sprint(refused), "forged")
}

// actorOfRequest returns the actor of the newest request that has one.
func actorOfRequest(t *testing.T, e *fakeEngine) runtime.Actor {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, req := range slices.Backward(e.requests) {
		if v := reflect.ValueOf(req); v.Kind() == reflect.Struct && v.FieldByName("By").IsValid() {
			actor, ok := reflect.TypeAssert[runtime.Actor](v.FieldByName("By"))
			require.True(t, ok)
			return actor
		}
	}
	t.Fatal("no request has an actor")
	return runtime.Actor{}
}

// Every request of the runtime has the caller and the method of its call, whatever the
// call says of itself.
func TestRequestsHaveTheirActor(t *testing.T) {
	said := map[string]string{"actor": "eve", "started_by": "eve", "responder": "eve", "by": "eve"}
	value := newJSONPayload(`{"responder":"eve","actor":"eve"}`)
	answer := &graphdv1.ResumeSpec{ThreadId: "t1", Metadata: said, Single: &graphdv1.InterruptResponse{
		Outcome: &graphdv1.InterruptResponse_Value{Value: value}, Note: "eve",
	}}
	question := &graphdv1.Interrupt{
		ThreadId: "t1", InterruptId: "q1", Assignees: []string{"ben"}, Responder: "eve", ResponderHow: "certificate", ResponseMethod: "eve",
	}
	supersteps := []*graphdv1.StateSuperstep{{Updates: []*graphdv1.StateUpdate{{Values: value}}}}
	for method, request := range map[string]proto.Message{
		"GraphService/StartRun":              &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{Metadata: said}},
		"GraphService/Stream":                &graphdv1.StreamRequest{Run: &graphdv1.RunSpec{Metadata: said}},
		"GraphService/ResumeRun":             &graphdv1.ResumeRunRequest{Resume: answer},
		"GraphService/Resume":                &graphdv1.ResumeRequest{Resume: answer},
		"GraphService/CancelRun":             &graphdv1.CancelRunRequest{ThreadId: "t1", Reason: "eve"},
		"ThreadService/CreateThread":         &graphdv1.CreateThreadRequest{Thread: &graphdv1.Thread{Metadata: said}},
		"ThreadService/UpdateThread":         &graphdv1.UpdateThreadRequest{Thread: &graphdv1.Thread{ThreadId: "t1", Metadata: said}},
		"ThreadService/ForkThread":           &graphdv1.ForkThreadRequest{SourceThreadId: "t1", Metadata: said},
		"ThreadService/CopyThread":           &graphdv1.CopyThreadRequest{SourceThreadId: "t1", Metadata: said},
		"ThreadService/PruneThread":          &graphdv1.PruneThreadRequest{ThreadId: "t1", KeepCheckpoints: 1},
		"ThreadService/UpdateState":          &graphdv1.UpdateStateRequest{ThreadId: "t1", Values: value},
		"ThreadService/BulkUpdateState":      &graphdv1.BulkUpdateStateRequest{ThreadId: "t1", Supersteps: supersteps},
		"InterruptService/UpdateInterrupt":   &graphdv1.UpdateInterruptRequest{Interrupt: question},
		"InterruptService/ClaimInterrupt":    &graphdv1.ClaimInterruptRequest{ThreadId: "t1", InterruptId: "q1"},
		"InterruptService/ReleaseInterrupt":  &graphdv1.ReleaseInterruptRequest{ThreadId: "t1", InterruptId: "q1", Note: "eve"},
		"InterruptService/DelegateInterrupt": &graphdv1.DelegateInterruptRequest{ThreadId: "t1", InterruptId: "q1", To: "eve", Note: "eve"},
		"InterruptService/RevealInterrupt":   &graphdv1.RevealInterruptRequest{ThreadId: "t1", InterruptId: "q1", Note: "eve"},
		"InterruptService/RetractResponse":   &graphdv1.RetractResponseRequest{ThreadId: "t1", InterruptId: "q1", Note: "eve"},
		"InterruptService/CheckResponses":    &graphdv1.CheckResponsesRequest{ThreadId: "t1", Responses: []*graphdv1.InterruptResponse{{InterruptId: "q1", Outcome: &graphdv1.InterruptResponse_Value{Value: value}, Note: "eve"}}},
		"InterruptService/CommentInterrupt":  &graphdv1.CommentInterruptRequest{ThreadId: "t1", InterruptId: "q1", Text: "eve"},
	} {
		method = "graphd.v1." + method
		e := newFakeEngine()
		e.interrupts = []checkpoint.Interrupt{{ID: "q1"}}
		require.NoError(t, callMethodWith(withHeaders(t, "Bearer token-of-ana"), t, startServer(t, e, withCallers).conn, "/"+method, request), method)
		require.Equal(t, runtime.Actor{Name: "ana", How: "jwt", Method: method}, actorOfRequest(t, e))
		require.NoError(t, callMethodWith(withHeaders(t, "Bearer token-of-eve"), t, startServer(t, e).conn, "/"+method, request), method)
		require.Zero(t, actorOfRequest(t, e), "a server that does not know its callers believes none")
	}
}

// A client that asked for the cancel of its run when it leaves is who cancels it.
func TestAClientThatLeavesIsWhoCancels(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e, withCallers)
	ctx, leave := context.WithCancel(withHeaders(t, "Bearer token-of-ana"))
	s, err := c.Stream(ctx, &graphdv1.StreamRequest{
		Run: &graphdv1.RunSpec{}, OnDisconnect: graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CANCEL,
	})
	require.NoError(t, err)
	_, err = s.Recv()
	require.NoError(t, err)
	leave()
	var cancel runtime.CancelRequest
	require.Eventually(t, func() (ok bool) {
		cancel, ok = e.lastRequest(t).(runtime.CancelRequest)
		return ok
	}, time.Minute, time.Millisecond)
	require.Equal(t, runtime.Actor{Name: "ana", How: "jwt", Method: "graphd.v1.GraphService/Stream"}, cancel.By)
}

// What the store keeps about who did something is what clients read.
func TestClientsReadWhoDidWhat(t *testing.T) {
	e := newFakeEngine()
	e.run.StartedBy = "ana"
	at := time.Date(2026, 11, 24, 9, 30, 0, 0, time.UTC)
	answered := checkpoint.Interrupt{
		ID: "q1", Thread: "t1", State: checkpoint.InterruptAnswered, Responder: "ben", ResponderHow: "api key",
		ResponseMethod: "graphd.v1.GraphService/Resume", ResponseTime: at,
	}
	e.interrupts = []checkpoint.Interrupt{answered}
	e.appendEvents(checkpoint.Event{Kind: checkpoint.EventResolved, Actor: "ben", Interrupts: e.interrupts})
	c := startServer(t, e)
	run, err := c.GetRun(t.Context(), &graphdv1.GetRunRequest{ThreadId: "t1", RunId: "run-1"})
	require.NoError(t, err)
	require.Equal(t, "ana", run.GetStartedBy())
	q, err := c.GetInterrupt(t.Context(), &graphdv1.GetInterruptRequest{ThreadId: "t1", InterruptId: "q1"})
	require.NoError(t, err)
	require.Equal(t, []string{"ben", "api key", "graphd.v1.GraphService/Resume"}, []string{q.GetResponder(), q.GetResponderHow(), q.GetResponseMethod()})
	require.True(t, at.Equal(q.GetResponseTime().AsTime()))
	s, err := c.Watch(t.Context(), &graphdv1.WatchRequest{ThreadId: "t1", Start: &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}})
	require.NoError(t, err)
	for {
		event, err := s.Recv()
		require.NoError(t, err)
		if event.GetInterruptResolved() != nil {
			require.Equal(t, "ben", event.GetActor())
			require.Equal(t, "api key", event.GetInterruptResolved().GetInterrupts()[0].GetResponderHow())
			break
		}
	}
}

func TestABrokenAuthenticatorRefusesItsCalls(t *testing.T) {
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.Authenticator = fakeAuthenticator{panics: true} })
	for _, method := range []string{"/graphd.v1.RegistryService/GetServerInfo", "/graphd.v1.GraphService/Watch"} {
		err := callMethod(t.Context(), t, c.conn, method)
		require.Equal(t, "INTERNAL", requireErrorInfo(t, err).GetReason())
	}
	_, err := healthpb.NewHealthClient(c.conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
}

// A token of the largest size fits into the headers of a call, and one that is larger
// has a reason until it does not fit either.
func TestTokensFitIntoHeaders(t *testing.T) {
	chain := &identity.Chain{JWTs: fakeAuthenticator{}}
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.Authenticator = chain })
	call := func(size int) error {
		const start = "token-of-"
		_, err := c.GetServerInfo(withHeaders(t, "Bearer "+start+strings.Repeat("a", size-len(start))), &graphdv1.GetServerInfoRequest{})
		return err
	}
	require.NoError(t, call(identity.MaxTokenBytes))
	for _, size := range []int{identity.MaxTokenBytes + 1, 2*identity.MaxTokenBytes - 1<<10} {
		require.Equal(t, "TOKEN_TOO_LARGE", requireErrorInfo(t, call(size)).GetReason())
	}
	// The server announces the size of its headers, and gRPC does not send larger ones.
	require.Equal(t, codes.Internal, status.Code(call(100_000)))
	require.NoError(t, call(100), "the connection goes on")
}
