package permission_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/access"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/permission"
)

// threadGraphs has the graphs of threads, and counts reads.
type threadGraphs struct {
	graphs map[string]string
	err    error
	reads  int
}

func (g *threadGraphs) ReadGraph(_ context.Context, thread string) (string, error) {
	g.reads++
	if g.err != nil {
		return "", g.err
	}
	graph, ok := g.graphs[thread]
	if !ok {
		return "", runtime.ThreadNotFoundError(thread)
	}
	return graph, nil
}

// newAuthorizer makes an authorizer with a policy for the principal ana.
func newAuthorizer(t *testing.T, bindings string) (*permission.Authorizer, *threadGraphs) {
	t.Helper()
	policy, err := access.Parse("policy.yaml", []byte("bindings: ["+bindings+"]"))
	require.NoError(t, err)
	threads := &threadGraphs{graphs: map[string]string{"pay-1": "payout", "hr-1": "hire", "none-1": ""}}
	a, err := permission.New(permission.Options{Policy: func() *access.Policy { return policy }, Threads: threads, Now: time.Now})
	require.NoError(t, err)
	return a, threads
}

func ana() *identity.Principal { return &identity.Principal{Name: "ana", How: identity.HowJWT} }

// describeRefusal returns the reason of a refusal and what decided, "" for none.
func describeRefusal(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	refused, ok := errors.AsType[*runtime.Error](err)
	require.True(t, ok, "%v", err)
	if rule := refused.Meta["rule"]; rule != "" {
		return refused.Reason + " " + rule
	}
	return refused.Reason
}

const payAdmin = "{roles: [admin], principals: [ana], graphs: [payout]}"

func TestCallsAreDecidedByTheirGraphs(t *testing.T) {
	const thread, graph = "THREAD_NOT_FOUND", "GRAPH_NOT_FOUND"
	spec := func(thread, graph string, create bool) *graphdv1.StartRunRequest {
		return &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{ThreadId: thread, Graph: graph, CreateThread: create}}
	}
	for name, c := range map[string]struct {
		bindings string
		method   string
		request  proto.Message
		want     string
		reads    int
	}{
		"a thread that it sees": {payAdmin, graphdv1.ThreadService_GetThread_FullMethodName, &graphdv1.GetThreadRequest{ThreadId: "pay-1"}, "", 1},
		"a thread of another graph": {
			payAdmin, graphdv1.ThreadService_GetThread_FullMethodName, &graphdv1.GetThreadRequest{ThreadId: "hr-1"}, thread, 1,
		},
		"no thread":              {payAdmin, graphdv1.ThreadService_GetThread_FullMethodName, &graphdv1.GetThreadRequest{ThreadId: "new"}, thread, 1},
		"a thread without graph": {payAdmin, graphdv1.ThreadService_GetThread_FullMethodName, &graphdv1.GetThreadRequest{ThreadId: "none-1"}, thread, 1},
		"any thread costs no read": {
			"{roles: [viewer], principals: [ana]}", graphdv1.ThreadService_GetThread_FullMethodName, &graphdv1.GetThreadRequest{ThreadId: "hr-1"}, "", 0,
		},
		"a condition on the graph costs one": {
			`{roles: [viewer], principals: [ana], condition: 'graph != "hire"'}`, graphdv1.ThreadService_GetThread_FullMethodName,
			&graphdv1.GetThreadRequest{ThreadId: "hr-1"}, thread, 1,
		},
		"sees and may not": {
			"{roles: [viewer], principals: [ana], graphs: [payout]}", graphdv1.ThreadService_DeleteThread_FullMethodName,
			&graphdv1.DeleteThreadRequest{ThreadId: "pay-1"}, "ACCESS_DENIED role: operator, admin", 1,
		},
		"a right is missing": {
			"{roles: [answerer], principals: [ana]}", graphdv1.GraphService_Resume_FullMethodName,
			&graphdv1.ResumeRequest{Resume: &graphdv1.ResumeSpec{ThreadId: "pay-1", Settings: &graphdv1.RunSettings{}}},
			"ACCESS_DENIED right: replace-settings", 1,
		},
		"an answer with a webhook needs the right": {
			"{roles: [answerer], principals: [ana]}", graphdv1.GraphService_ResumeRun_FullMethodName,
			&graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{ThreadId: "pay-1", Webhook: "https://example.com/"}},
			"ACCESS_DENIED right: add-webhook", 1,
		},
		"a new thread":                  {payAdmin, graphdv1.GraphService_StartRun_FullMethodName, spec("new", "payout", true), "", 1},
		"a new thread of another graph": {payAdmin, graphdv1.GraphService_StartRun_FullMethodName, spec("new", "hire", true), graph, 0},
		"a graph that there is not":     {payAdmin, graphdv1.GraphService_StartRun_FullMethodName, spec("new", "nothing", true), graph, 0},
		"a thread of its graph":         {payAdmin, graphdv1.GraphService_StartRun_FullMethodName, spec("pay-1", "payout", true), "", 1},
		"a hidden thread, as if new":    {payAdmin, graphdv1.GraphService_StartRun_FullMethodName, spec("hr-1", "payout", true), "THREAD_EXISTS", 1},
		"a thread that it sees and may not run": {
			payAdmin + ", {roles: [viewer], principals: [ana], graphs: [hire]}", graphdv1.GraphService_StartRun_FullMethodName,
			spec("hr-1", "payout", true), "ACCESS_DENIED role: starter, operator, admin", 1,
		},
		"a hidden thread":                     {payAdmin, graphdv1.GraphService_StartRun_FullMethodName, spec("hr-1", "payout", false), thread, 1},
		"a hidden thread, no graph":           {payAdmin, graphdv1.GraphService_StartRun_FullMethodName, spec("hr-1", "", true), thread, 1},
		"no thread, no graph":                 {payAdmin, graphdv1.GraphService_StartRun_FullMethodName, spec("new", "", true), thread, 1},
		"a thread that the server names":      {payAdmin, graphdv1.GraphService_StartRun_FullMethodName, spec("", "payout", true), "", 0},
		"a thread for no graph":               {payAdmin, graphdv1.ThreadService_CreateThread_FullMethodName, &graphdv1.CreateThreadRequest{ThreadId: "new"}, "ACCESS_DENIED role: starter, operator, admin", 0},
		"a graph that it sees and may not":    {"{roles: [viewer], principals: [ana]}", graphdv1.RegistryService_DeleteGraph_FullMethodName, &graphdv1.DeleteGraphRequest{Graph: "payout"}, "ACCESS_DENIED role: author, admin", 0},
		"a list":                              {payAdmin, graphdv1.ThreadService_ListThreads_FullMethodName, &graphdv1.ListThreadsRequest{}, "", 0},
		"a list that it has not":              {"{roles: [worker], principals: [ana]}", graphdv1.ThreadService_ListThreads_FullMethodName, &graphdv1.ListThreadsRequest{}, "ACCESS_DENIED role: viewer, starter, operator, admin", 0},
		"every caller":                        {"", graphdv1.RegistryService_GetServerInfo_FullMethodName, &graphdv1.GetServerInfoRequest{}, "", 0},
		"what graphd calls itself":            {payAdmin, graphdv1.NodeService_Describe_FullMethodName, &graphdv1.DescribeRequest{}, "ACCESS_DENIED method", 0},
		"a method that is not in the table":   {payAdmin, "/graphd.v1.GraphService/Erase", &graphdv1.GetServerInfoRequest{}, "ACCESS_DENIED method", 0},
		"an expired thread needs the right":   {"{roles: [starter], principals: [ana]}", graphdv1.ThreadService_UpdateThread_FullMethodName, &graphdv1.UpdateThreadRequest{Thread: &graphdv1.Thread{ThreadId: "pay-1", Expiration: &graphdv1.Thread_Ttl{Ttl: &durationpb.Duration{}}}}, "ACCESS_DENIED right: expire-thread", 1},
		"and by the mask":                     {"{roles: [starter], principals: [ana]}", graphdv1.ThreadService_UpdateThread_FullMethodName, &graphdv1.UpdateThreadRequest{Thread: &graphdv1.Thread{ThreadId: "pay-1"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"metadata", "keep_checkpoints"}}}, "ACCESS_DENIED right: expire-thread", 1},
		"labels alone don't":                  {"{roles: [starter], principals: [ana]}", graphdv1.ThreadService_UpdateThread_FullMethodName, &graphdv1.UpdateThreadRequest{Thread: &graphdv1.Thread{ThreadId: "pay-1"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"metadata"}}}, "", 0},
		"a field inside lists needs a right":  {"{roles: [starter], principals: [ana]}", graphdv1.ThreadService_BulkUpdateState_FullMethodName, &graphdv1.BulkUpdateStateRequest{ThreadId: "pay-1", Supersteps: []*graphdv1.StateSuperstep{{}, {Updates: []*graphdv1.StateUpdate{{}, {AsNode: "n"}}}}}, "ACCESS_DENIED role: operator, admin", 1},
		"an enum needs a right by its value":  {"{roles: [starter], principals: [ana]}", graphdv1.GraphService_StartRun_FullMethodName, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{Graph: "g", OpenInterrupts: graphdv1.OpenInterruptPolicy_OPEN_INTERRUPT_POLICY_DISCARD}}, "ACCESS_DENIED right: discard-questions", 0},
		"another value of the enum needs not": {"{roles: [starter], principals: [ana]}", graphdv1.GraphService_StartRun_FullMethodName, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{Graph: "g", OpenInterrupts: graphdv1.OpenInterruptPolicy_OPEN_INTERRUPT_POLICY_REJECT}}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			a, threads := newAuthorizer(t, c.bindings)
			err := a.AuthorizeCall(t.Context(), ana(), c.method, c.request)
			require.Equal(t, c.want, describeRefusal(t, err))
			require.Equal(t, c.reads, threads.reads)
		})
	}
}

// The text of a refusal says what is missing, and what would give it.
func TestRefusalsSayWhatIsWanted(t *testing.T) {
	const resume = graphdv1.GraphService_Resume_FullMethodName
	for name, c := range map[string]struct {
		bindings, method string
		request          proto.Message
		want             string
	}{
		"role": {
			"{roles: [viewer], principals: [ana]}", resume, &graphdv1.ResumeRequest{Resume: &graphdv1.ResumeSpec{ThreadId: "pay-1"}},
			"access denied: the caller has none of the roles that may call this here, want one of answerer, admin",
		},
		"right": {
			"{roles: [starter], principals: [ana]}", graphdv1.GraphService_StartRun_FullMethodName,
			&graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{Graph: "g", OpenInterrupts: graphdv1.OpenInterruptPolicy_OPEN_INTERRUPT_POLICY_DISCARD}},
			"access denied: the request needs the right discard-questions, want one of the roles operator, admin",
		},
		"condition": {
			`{roles: [viewer], principals: [ana]}, {roles: [answerer], principals: [ana], condition: "principal.how == 'certificate'"}`,
			resume, &graphdv1.ResumeRequest{Resume: &graphdv1.ResumeSpec{ThreadId: "pay-1"}},
			"access denied: the condition of the binding in line 1 of the policy is not true now",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := newAuthorizer(t, c.bindings)
			refused, ok := errors.AsType[*runtime.Error](a.AuthorizeCall(t.Context(), ana(), c.method, c.request))
			require.True(t, ok)
			require.Equal(t, c.want, refused.Message)
		})
	}
}

func TestCallsWithoutCallersAreRefused(t *testing.T) {
	a, _ := newAuthorizer(t, payAdmin)
	for _, row := range access.Methods() {
		err := a.AuthorizeCall(t.Context(), nil, row.Method, &graphdv1.GetServerInfoRequest{})
		if row.Scope == access.ScopeOpen {
			require.NoError(t, err, row.Method)
			continue
		}
		refused, ok := errors.AsType[*identity.Error](err)
		require.True(t, ok, row.Method)
		require.Equal(t, identity.NoCredentials, refused.Reason)
	}
}

// A damaged thread looks as if it did not exist to callers for some graphs.
func TestFaultsOfThreadsAreHidden(t *testing.T) {
	a, threads := newAuthorizer(t, payAdmin)
	threads.err = runtime.Errorf(runtime.ReasonCheckpointCorrupt, "damaged")
	request := &graphdv1.GetThreadRequest{ThreadId: "hr-1"}
	err := a.AuthorizeCall(t.Context(), ana(), graphdv1.ThreadService_GetThread_FullMethodName, request)
	require.Equal(t, runtime.ThreadNotFoundError("hr-1"), err)
	threads.err = runtime.Errorf(runtime.ReasonStoreUnavailable, "no store")
	err = a.AuthorizeCall(t.Context(), ana(), graphdv1.ThreadService_GetThread_FullMethodName, request)
	require.Equal(t, "STORE_UNAVAILABLE", describeRefusal(t, err))
}

// A call that needs no right costs no memory.
func TestDecisionsDoNotAllocate(t *testing.T) {
	a, _ := newAuthorizer(t, "{roles: [starter, viewer], principals: [ana]}")
	caller, request := ana(), &graphdv1.StreamRequest{Run: &graphdv1.RunSpec{ThreadId: "pay-1", Graph: "payout", CreateThread: true}}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if err := a.AuthorizeCall(t.Context(), caller, graphdv1.GraphService_Stream_FullMethodName, request); err != nil {
			t.Error(err)
		}
	}))
}
