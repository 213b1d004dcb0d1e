package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/access"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
	"github.com/graphd-dev/graphd/internal/server"
)

// The outcomes of a call.
const (
	outcomePassed = "passed"
	outcomeDenied = "denied"
	outcomeHidden = "hidden"
)

// describeOutcome says whether a call passed the decision. An id that does not exist and
// a thread that may not be seen differ by the reason.
func describeOutcome(err error) string {
	switch reasonOfRefusal(err) {
	case "ACCESS_DENIED":
		return outcomeDenied
	case "THREAD_NOT_FOUND", "GRAPH_NOT_FOUND":
		return outcomeHidden
	}
	return outcomePassed
}

// wantOutcome says by the tables what comes of a call.
func wantOutcome(role access.Role, row access.MethodRow, graph string) string {
	sees := []string{"/graphd.v1.ThreadService/GetThread", "/graphd.v1.GraphService/GetRun", "/graphd.v1.InterruptService/GetInterrupt"}
	if strings.Contains(row.Method, "RegistryService") || strings.HasSuffix(row.Method, "/CreateThread") || strings.HasSuffix(row.Method, "/CreateAssistant") || strings.HasSuffix(row.Method, "/CreateCron") {
		sees = []string{"/graphd.v1.RegistryService/GetGraph"}
	}
	canSee := slices.ContainsFunc(access.Methods(), func(m access.MethodRow) bool {
		return slices.Contains(sees, m.Method) && slices.Contains(m.Roles, role)
	})
	switch hasRole := slices.Contains(row.Roles, role); {
	case row.Scope.IsForAllCallers():
		return outcomePassed
	case strings.Contains(row.Method, "ItemService"): // the roles are bound to some graphs
		return outcomeDenied
	case strings.HasSuffix(row.Method, "/CallGraph") && graph == "hidden":
		return outcomeDenied
	case row.Scope != access.ScopeGraph && hasRole:
		return outcomePassed
	case row.Scope != access.ScopeGraph, strings.HasSuffix(row.Method, "/PutGraph") && (graph == "hidden" || !hasRole):
		return outcomeDenied
	case graph == "hidden" || !hasRole && !canSee:
		return outcomeHidden
	case hasRole:
		return outcomePassed
	}
	return outcomeDenied
}

// Every method with every role, for a graph that the role is bound to and for another, in
// the own tenant and in a chosen one.
func TestEveryMethodWithEveryRole(t *testing.T) {
	s := startAccessServer(t)
	for _, owner := range []string{"", otherTenant} {
		ctx := t.Context()
		if owner != "" {
			ctx = choose(ctx, owner)
		}
		_, err := graphdv1.NewThreadServiceClient(s.conn).CreateThread(s.as(ctx, "root"), &graphdv1.CreateThreadRequest{ThreadId: "root-thread", Thread: &graphdv1.Thread{Graph: "open"}})
		require.NoError(t, err)
		t.Run("tenant="+owner, func(t *testing.T) { s.requireOutcomes(t, ctx) })
	}
}

// rolesAndUnbound lists all roles, and a caller without one.
func rolesAndUnbound() []access.Role {
	roles := []access.Role{"unbound"}
	for _, row := range access.Roles() {
		roles = append(roles, row.Role)
	}
	return roles
}

// requireOutcomes makes every call of the tables in the tenant of ctx.
func (s *accessServer) requireOutcomes(t *testing.T, ctx context.Context) {
	t.Helper()
	calls := 0
	for _, row := range access.Methods() {
		if row.Scope == access.ScopeEndpoint {
			continue // the server does not serve it
		}
		for _, role := range rolesAndUnbound() {
			for _, graph := range []string{"open", "hidden"} {
				err := s.call(t, s.as(ctx, string(role)), row.Method, newRequest(t, row.Method, graph))
				require.Equal(t, wantOutcome(role, row, graph), describeOutcome(err), "%s as %s for %s: %v", row.Method, role, graph, err)
				calls++
			}
		}
		if !row.Scope.IsForAllCallers() {
			err := s.call(t, ctx, row.Method, newRequest(t, row.Method, "open"))
			require.Equal(t, codes.Unauthenticated, status.Code(err), row.Method)
		}
	}
	t.Logf("%d calls", calls)
}

// Whatever is asked for in another tenant looks as if it did not exist, to the byte: for
// every method, with every role for the graph by its name, and for callers who may do
// everything. So does what is asked for in the own tenant from the chosen one.
func TestOtherTenantsLookAsIfTheyDidNotExist(t *testing.T) {
	s := startAccessServer(t)
	s.addGraph(t, choose(s.as(t.Context(), "root"), otherTenant), "elsewhere")
	s.addGraph(t, s.as(t.Context(), "root"), "asking-too")
	show := func(answer *dynamicpb.Message, err error, name string) string {
		told, marshalErr := prototext.MarshalOptions{Multiline: true}.Marshal(status.Convert(err).Proto())
		require.NoError(t, marshalErr)
		got, marshalErr := prototext.MarshalOptions{Multiline: true}.Marshal(answer)
		require.NoError(t, marshalErr)
		return strings.ReplaceAll(strings.Join(strings.Fields(string(told)+" "+string(got)), " "), name, "NAME")
	}
	calls := 0
	for _, row := range access.Methods() {
		if !strings.Contains(requestTexts()[strings.TrimPrefix(row.Method, "/graphd.v1.")], "GRAPH") {
			continue // it names no graph and no thread
		}
		for _, role := range append(rolesAndUnbound(), "root") {
			for _, c := range []struct {
				ctx           context.Context
				there, absent string
			}{
				{s.as(t.Context(), string(role)), "elsewhere", "nowhere"},
				{choose(s.as(t.Context(), string(role)), otherTenant), "asking-too", "nowhere"},
			} {
				if c.there == "asking-too" && role != "root" {
					continue // no other role has it
				}
				answer, err := s.callForAnswer(t, c.ctx, row.Method, newRequest(t, row.Method, c.there))
				absentAnswer, absentErr := s.callForAnswer(t, c.ctx, row.Method, newRequest(t, row.Method, c.absent))
				require.Equal(t, show(absentAnswer, absentErr, c.absent), show(answer, err, c.there), "%s as %s", row.Method, role)
				calls++
			}
		}
	}
	require.Greater(t, calls, 200)
}

// namingFields calls do with each field of a message, or of one inside, that names a thread, a
// graph or a worker.
func namingFields(m protoreflect.Message, do func(in protoreflect.Message, field protoreflect.FieldDescriptor)) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.IsList(), f.IsMap(), f.ContainingOneof() != nil && !m.Has(f):
		case f.Message() != nil && strings.HasPrefix(string(f.Message().FullName()), "graphd.v1."):
			if f.Message().Name() != "Payload" && f.Message().Name() != "CronFiring" { // which a request must not have
				namingFields(m.Mutable(f).Message(), do)
			}
		case slices.Contains([]protoreflect.Name{"thread_id", "source_thread_id", "graph", "worker_id"}, f.Name()):
			do(m, f)
		}
	}
}

// No field of any request reaches into another tenant by the name that stores have: it is
// refused, or it is one that the server sets itself and ignores.
func TestNoFieldNamesAnotherTenant(t *testing.T) {
	s := startAccessServer(t)
	root := s.as(t.Context(), "root")
	refused := 0
	for _, row := range access.Methods() {
		if row.Scope == access.ScopeEndpoint || !strings.HasPrefix(row.Method, "/graphd.") {
			continue
		}
		request := newRequest(t, row.Method, "open")
		if strings.HasSuffix(row.Method, "/Connect") {
			require.NoError(t, prototext.Unmarshal([]byte(`hello {manifest {}}`), request))
		}
		usual := metadataOf(s.call(t, root, row.Method, proto.Clone(request)))
		namingFields(request, func(in protoreflect.Message, field protoreflect.FieldDescriptor) {
			before := in.Get(field)
			in.Set(field, protoreflect.ValueOfString(otherTenant+"@open"))
			err := s.call(t, root, row.Method, request)
			if reasonOfRefusal(err) == "INVALID_FIELD" && strings.HasSuffix(metadataOf(err)["field"], string(field.Name())) {
				refused++
			} else {
				require.Equal(t, usual, metadataOf(err), "%s: %s", row.Method, field.FullName())
				require.Contains(t, []string{"Thread", "Interrupt"}, string(in.Descriptor().Name()), "%s: %s is not looked at", row.Method, field.FullName())
			}
			in.Set(field, before)
		})
	}
	require.Greater(t, refused, 25)
}

// setField sets a field of a request to a value that needs its right.
func setField(t *testing.T, m protoreflect.Message, field access.Field) {
	t.Helper()
	names := strings.Split(field.Path, ".")
	for i, name := range names {
		f := m.Descriptor().Fields().ByName(protoreflect.Name(name))
		require.NotNil(t, f)
		last := i == len(names)-1
		switch {
		case f.IsList() && !last:
			m = m.Mutable(f).List().Get(0).Message()
		case f.IsList():
			list := m.Mutable(f).List()
			list.Append(list.NewElement())
		case f.Message() != nil && f.Message().FullName() == "google.protobuf.FieldMask":
			require.NoError(t, prototext.Unmarshal([]byte(`paths: "ttl"`), m.Mutable(f).Message().Interface()))
		case f.Message() != nil:
			m = m.Mutable(f).Message()
		case f.Enum() != nil:
			m.Set(f, protoreflect.ValueOfEnum(f.Enum().Values().ByName(protoreflect.Name(field.When)).Number()))
		case f.Kind() == protoreflect.BoolKind:
			m.Set(f, protoreflect.ValueOfBool(true))
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString("n"))
		case f.Kind() == protoreflect.Int32Kind:
			m.Set(f, protoreflect.ValueOfInt32(1))
		default:
			require.Fail(t, "a kind that is not handled", field.Path)
		}
	}
}

// Every field that needs a right, with every role that has the method.
func TestEveryRightWithEveryRole(t *testing.T) {
	s := startAccessServer(t)
	methods := map[string]access.MethodRow{}
	for _, row := range access.Methods() {
		methods[row.Method] = row
	}
	calls := 0
	for _, right := range access.Rights() {
		for _, field := range right.Fields {
			if right.Right == access.ApproveChanges || right.Right == access.BringGraphs {
				continue // they depend on what is stored, see the tests below
			}
			for _, role := range methods[field.Method].Roles {
				request := newRequest(t, field.Method, "open")
				setField(t, request, field)
				s.putGraph(t, s.as(t.Context(), "root"), "open", false) // a forced deletion deletes it
				err := s.call(t, s.as(t.Context(), string(role)), field.Method, request)
				want := outcomePassed
				if !slices.Contains(right.Roles, role) {
					want = outcomeDenied
					require.Equal(t, "right: "+string(right.Right), metadataOf(err)["rule"])
				}
				require.Equal(t, want, describeOutcome(err), "%s of %s as %s: %v", field.Path, field.Method, role, err)
				calls++
			}
		}
	}
	require.Greater(t, calls, 20)
}

func metadataOf(err error) map[string]string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetMetadata()
		}
	}
	return nil
}

// A thread or a graph that a caller may not see gives the error of one that does not
// exist, to the byte.
func TestWhatIsHiddenLooksAsIfItDidNotExist(t *testing.T) {
	s := startAccessServer(t)
	show := func(err error, name string) string {
		text, marshalErr := prototext.Marshal(status.Convert(err).Proto())
		require.NoError(t, marshalErr)
		return strings.ReplaceAll(strings.Join(strings.Fields(string(text)), " "), name, "NAME")
	}
	for _, row := range access.Methods() {
		if row.Scope != access.ScopeGraph {
			continue
		}
		for _, role := range []string{"unbound", "viewer", "answerer", "starter", "author", "operator", "admin"} {
			ctx := s.as(t.Context(), role)
			hidden := s.call(t, ctx, row.Method, newRequest(t, row.Method, "hidden"))
			missing := s.call(t, ctx, row.Method, newRequest(t, row.Method, "absent"))
			if shown := show(hidden, "hidden"); strings.Contains(shown, "requestId") {
				require.Fail(t, "ids differ", shown)
			}
			require.Equal(t, show(missing, "absent"), show(hidden, "hidden"), "%s as %s", row.Method, role)
			require.NotContains(t, hidden.Error(), "asking", "an error names another graph")
		}
	}
}

// startAskingRuns starts 30 runs that ask, 27 of them of a graph that only root sees. It returns
// the threads of the others.
func (s *accessServer) startAskingRuns(t *testing.T) map[string]bool {
	t.Helper()
	root, runs := s.as(t.Context(), "root"), graphdv1.NewGraphServiceClient(s.conn)
	s.putGraph(t, root, "secret", true)
	visible := map[string]bool{}
	for i := range 30 {
		graph := "secret"
		if i%10 == 0 {
			graph = "asking"
		}
		id := fmt.Sprintf("%s-%d", graph, i)
		_, err := runs.StartRun(root, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
			ThreadId: id, CreateThread: true, Graph: graph, Start: &graphdv1.RunSpec_Input{Input: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: "{}"}}},
		}})
		require.NoError(t, err)
		_, err = runs.WaitRun(root, &graphdv1.WaitRunRequest{ThreadId: id})
		require.NoError(t, err)
		if graph == "asking" {
			visible[id] = true
		}
	}
	return visible
}

// requireOffsets requires that a page after an offset is what a caller sees after so many threads,
// and that no count tells of others.
func requireOffsets(t *testing.T, ctx context.Context, threads graphdv1.ThreadServiceClient, size int32) {
	t.Helper()
	all, err := threads.ListThreads(ctx, &graphdv1.ListThreadsRequest{CountTotal: true})
	require.NoError(t, err)
	require.Nil(t, all.TotalSize) //nolint:protogetter // it is not known
	for offset := range len(all.GetThreads()) + 2 {
		request, ids := &graphdv1.ListThreadsRequest{PageSize: size, Offset: int32(offset)}, []string{}
		for {
			page, err := threads.ListThreads(ctx, request)
			require.NoError(t, err)
			for _, th := range page.GetThreads() {
				ids = append(ids, th.GetThreadId())
			}
			if page.GetNextPageToken() == "" {
				break
			}
			request = &graphdv1.ListThreadsRequest{PageSize: size, PageToken: page.GetNextPageToken()}
		}
		want := []string{}
		for _, th := range all.GetThreads()[min(offset, len(all.GetThreads())):] {
			want = append(want, th.GetThreadId())
		}
		require.Equal(t, want, ids, "offset %d", offset)
	}
}

// Lists have what the caller may see, over pages too, and nothing tells how many others
// there are.
func TestListsHaveWhatTheCallerSees(t *testing.T) {
	s := startAccessServer(t)
	threads, inbox := graphdv1.NewThreadServiceClient(s.conn), graphdv1.NewInterruptServiceClient(s.conn)
	want := s.startAskingRuns(t)
	want["open"], want["asking"] = true, true
	viewer := s.as(t.Context(), "viewer")
	for _, size := range []int32{1, 2, 3, 50} {
		seen, token := map[string]bool{}, ""
		for pages := 0; ; pages++ {
			require.Less(t, pages, 20)
			page, err := threads.ListThreads(viewer, &graphdv1.ListThreadsRequest{PageSize: size, PageToken: token})
			require.NoError(t, err)
			for _, th := range page.GetThreads() {
				require.False(t, seen[th.GetThreadId()])
				seen[th.GetThreadId()] = true
			}
			if token = page.GetNextPageToken(); token == "" {
				break
			}
			require.Len(t, page.GetThreads(), int(size), "a page that ends early tells of others")
			require.NotContains(t, token, "secret")
		}
		require.Equal(t, want, seen)
		requireOffsets(t, viewer, threads, size)
		questions, token := 0, ""
		for {
			page, err := inbox.ListInterrupts(viewer, &graphdv1.ListInterruptsRequest{PageSize: size, PageToken: token})
			require.NoError(t, err)
			for _, q := range page.GetInterrupts() {
				require.True(t, want[q.GetThreadId()], q.GetThreadId())
			}
			questions += len(page.GetInterrupts())
			if token = page.GetNextPageToken(); token == "" {
				break
			}
		}
		require.Equal(t, 3, questions)
	}
	empty, err := inbox.ListInterrupts(viewer, &graphdv1.ListInterruptsRequest{ThreadId: "secret-1"})
	require.NoError(t, err)
	require.Empty(t, empty.GetInterrupts())
	graphs, err := graphdv1.NewRegistryServiceClient(s.conn).ListGraphs(viewer, &graphdv1.ListGraphsRequest{PageSize: 2})
	require.NoError(t, err)
	require.Len(t, graphs.GetGraphs(), 2)
	require.Empty(t, graphs.GetNextPageToken())

	ctx, cancel := context.WithCancel(viewer)
	defer cancel()
	watch, err := inbox.WatchInterrupts(ctx, &graphdv1.WatchInterruptsRequest{})
	require.NoError(t, err)
	asked := map[string]bool{}
	for {
		change, err := watch.Recv()
		require.NoError(t, err)
		if change.GetBookmark() {
			break
		}
		asked[change.GetInterrupt().GetThreadId()] = true
	}
	maps.DeleteFunc(want, func(id string, _ bool) bool { return !strings.Contains(id, "-") })
	require.Equal(t, want, asked)
}

// Counts have what the caller may see, whatever a caller asks for, and in each tenant its own.
func TestCountsHaveWhatTheCallerSees(t *testing.T) {
	s := startAccessServer(t)
	s.startAskingRuns(t)
	inbox := graphdv1.NewInterruptServiceClient(s.conn)
	filters := []string{``, `graph = "asking"`, `graph = "secret"`, `priority = URGENT`}
	count := func(ctx context.Context) (counts []int64) {
		t.Helper()
		answer, err := inbox.CountInterrupts(ctx, &graphdv1.CountInterruptsRequest{Filters: filters})
		require.NoError(t, err)
		for _, c := range answer.GetCounts() {
			require.Equal(t, graphdv1.CountInterruptsResponse_PRECISION_EXACT, c.GetPrecision())
			counts = append(counts, c.GetCount())
		}
		return counts
	}
	roles := 0
	for _, row := range access.Methods() {
		if row.Method != graphdv1.InterruptService_CountInterrupts_FullMethodName {
			continue
		}
		for _, role := range row.Roles {
			ctx := s.as(t.Context(), string(role))
			require.Equal(t, []int64{3, 3, 0, 0}, count(ctx), role)
			require.Equal(t, []int64{0, 0, 0, 0}, count(choose(ctx, otherTenant)), role)
			_, err := inbox.CountInterrupts(ctx, &graphdv1.CountInterruptsRequest{Filters: make([]string, 5)})
			require.ErrorContains(t, err, "at most 4", "%s: what is counted by reading is bounded", role)
			roles++
		}
	}
	require.Positive(t, roles)
	root := s.as(t.Context(), "root")
	require.Equal(t, []int64{30, 3, 27, 0}, count(root))
	require.Equal(t, []int64{0, 0, 0, 0}, count(choose(root, otherTenant)))
}

// Statistics have what the caller may see, and in each tenant its own.
func TestStatisticsHaveWhatTheCallerSees(t *testing.T) {
	s := startAccessServer(t)
	s.startAskingRuns(t)
	inbox := graphdv1.NewInterruptServiceClient(s.conn)
	asked := func(ctx context.Context) []int64 {
		t.Helper()
		got, err := inbox.GetInterruptStatistics(ctx, &graphdv1.GetInterruptStatisticsRequest{})
		require.NoError(t, err)
		require.False(t, got.GetPartial())
		counts := []int64{got.GetAll().GetTotal().GetAsked()}
		for _, g := range got.GetGroups() {
			require.Empty(t, g.GetGroup())
			counts = append(counts, g.GetSeries().GetTotal().GetAsked())
		}
		return counts
	}
	passed := func(ctx context.Context, graph string) int64 {
		t.Helper()
		got, err := inbox.GetAnswerStatistics(ctx, &graphdv1.GetAnswerStatisticsRequest{Graph: graph, Node: "n"})
		require.NoError(t, err)
		return got.GetAnswered()
	}
	root := s.as(t.Context(), "root")
	for _, thread := range []string{"asking-0", "secret-1", "secret-2"} {
		_, err := graphdv1.NewGraphServiceClient(s.conn).ResumeRun(root, &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{ThreadId: thread}})
		require.NoError(t, err)
	}
	require.Equal(t, []int64{30, 30}, asked(root))
	require.Equal(t, []int64{1, 2}, []int64{passed(root, "asking"), passed(root, "secret")})
	require.Equal(t, []int64{0}, asked(choose(root, otherTenant)))
	require.Zero(t, passed(choose(root, otherTenant), "asking"))
	roles := 0
	for _, row := range access.Methods() {
		if row.Method != graphdv1.InterruptService_GetInterruptStatistics_FullMethodName {
			continue
		}
		for _, role := range row.Roles {
			ctx := s.as(t.Context(), string(role))
			require.Equal(t, []int64{3, 3}, asked(ctx), role)
			require.Equal(t, []int64{1, 0}, []int64{passed(ctx, "asking"), passed(ctx, "secret")}, role)
			require.Equal(t, []int64{0}, asked(choose(ctx, otherTenant)), role)
			roles++
		}
	}
	require.Positive(t, roles)
}

// A version that takes a question away needs the right approve-changes, and so does the
// deletion of one.
func TestQuestionsAreNotRemovedWithoutTheRight(t *testing.T) {
	s := startAccessServer(t)
	registry := graphdv1.NewRegistryServiceClient(s.conn)
	put := func(caller, document string, only bool) error {
		_, err := registry.PutGraph(s.as(t.Context(), caller), &graphdv1.PutGraphRequest{
			Definition: &graphdv1.PutGraphRequest_Document{Document: document}, DocumentName: "g.yaml", ValidateOnly: only,
		})
		return err
	}
	without, with := fmt.Sprintf(openGraph, "asking"), fmt.Sprintf(askingGraph, "asking")
	for _, caller := range []string{"author", "admin"} {
		require.NoError(t, put(caller, with, false), "the same version again")
		require.NoError(t, put(caller, without, true))
		err := put(caller, without, false)
		require.Equal(t, "right: approve-changes", metadataOf(err)["rule"], caller)
		require.ErrorContains(t, err, `the breakpoint before "n"`)
		_, err = registry.DeleteGraph(s.as(t.Context(), caller), &graphdv1.DeleteGraphRequest{Graph: "asking"})
		require.Equal(t, "right: approve-changes", metadataOf(err)["rule"], caller)
		got, err := registry.GetGraph(s.as(t.Context(), "root"), &graphdv1.GetGraphRequest{Graph: "asking"})
		require.NoError(t, err)
		_, err = registry.DeleteGraphVersion(s.as(t.Context(), caller), &graphdv1.DeleteGraphVersionRequest{Graph: "asking", Version: got.GetVersion()})
		require.Equal(t, "right: approve-changes", metadataOf(err)["rule"], caller)
	}
	require.NoError(t, put("author", with+"step_limit: 7\n", false), "another version with the question")
	got, err := registry.GetGraph(s.as(t.Context(), "author"), &graphdv1.GetGraphRequest{Graph: "asking"})
	require.NoError(t, err)
	_, err = registry.DeleteGraphVersion(s.as(t.Context(), "author"), &graphdv1.DeleteGraphVersionRequest{Graph: "asking", Version: got.GetVersion()})
	require.NoError(t, err, "the version that is left asks the same")
	err = put("author", "graph: open\nchannels: {x: {}}\nnodes:\n  n: {graph: hidden}\nedges: [{from: __start__, to: n}]\n", false)
	require.Equal(t, "hidden", metadataOf(err)["graph"], "a graph inside that the author does not see")
	require.Equal(t, outcomeDenied, describeOutcome(put("author", fmt.Sprintf(openGraph, "hidden"), false)))
	require.NoError(t, put("approver", without, false))
}

// connectWorker opens the stream of a worker. The error is that of the hello.
func (s *accessServer) connectWorker(t *testing.T, caller, hello string) error {
	t.Helper()
	stream, err := graphdv1.NewWorkerServiceClient(s.conn).Connect(s.as(t.Context(), caller))
	require.NoError(t, err)
	request := &graphdv1.ConnectRequest{}
	require.NoError(t, prototext.Unmarshal([]byte(hello), request))
	require.NoError(t, stream.Send(request))
	answer, err := stream.Recv()
	if err == nil {
		for _, g := range answer.GetWelcome().GetGraphs() {
			for _, p := range g.GetProblems() {
				return errors.New(p.GetDescription())
			}
		}
	}
	return err
}

func TestWorkersServeTheirGraphs(t *testing.T) {
	s := startAccessServer(t)
	hello := func(id, manifest string) string {
		return fmt.Sprintf("hello {worker_id: %q credit {total_slots: 1} manifest {%s}}", id, manifest)
	}
	require.NoError(t, s.connectWorker(t, "worker", hello("w1", `nodes {graph: "open" node: "n"}`)))
	err := s.connectWorker(t, "worker", hello("w2", `nodes {graph: "open" node: "n"} nodes {graph: "hidden" node: "n"}`))
	require.Equal(t, "hidden", metadataOf(err)["graph"])
	require.Equal(t, outcomeDenied, describeOutcome(err))
	brought := `graphs {name: "open" channels {name: "x"} nodes {name: "n" remote {}} edges {sources: "__start__" target: "n"}}`
	require.ErrorContains(t, s.connectWorker(t, "worker", hello("w3", brought)), "the right bring-graphs")
	require.NoError(t, s.connectWorker(t, "root", hello("w4", brought)))
	require.NoError(t, s.connectWorker(t, "worker", hello("w5", brought)), "the server has the version")

	// The id of a connected worker belongs to its principal.
	err = s.connectWorker(t, "root", hello("w1", `nodes {graph: "open" node: "n"}`))
	require.Equal(t, "WORKER_ID_TAKEN", reasonOfRefusal(err))
	require.NoError(t, s.connectWorker(t, "worker", hello("w1", `nodes {graph: "open" node: "n"}`)))

	// A viewer sees the workers of its graphs.
	require.NoError(t, s.connectWorker(t, "root", hello("w6", `nodes {graph: "hidden" node: "n"}`)))
	listed, err := graphdv1.NewRegistryServiceClient(s.conn).ListWorkers(s.as(t.Context(), "viewer"), &graphdv1.ListWorkersRequest{})
	require.NoError(t, err)
	for _, w := range listed.GetWorkers() {
		require.NotEqual(t, "w6", w.GetWorkerId())
	}
}

// A policy that changes is taken up, and a broken one changes nothing.
func TestThePolicyIsFollowed(t *testing.T) {
	s := startAccessServer(t)
	mayList := func() bool {
		return s.call(t, s.as(t.Context(), "unbound"), graphdv1.ThreadService_ListThreads_FullMethodName, &graphdv1.ListThreadsRequest{}) == nil
	}
	require.False(t, mayList())
	require.NoError(t, os.WriteFile(s.policy, []byte("bindings: [{roles: [viewer], principals: [unbound]}]"), 0o600))
	require.Eventually(t, mayList, time.Minute, 50*time.Millisecond)
	require.NoError(t, os.WriteFile(s.policy, []byte("bindings: [{roles: [king], principals: [unbound]}]"), 0o600))
	require.True(t, mayList())
}

func TestServeRefusesAPolicyThatIsWrong(t *testing.T) {
	dir := t.TempDir()
	policy, keys := filepath.Join(dir, "access.yaml"), filepath.Join(dir, "keys.yaml")
	require.NoError(t, os.WriteFile(policy, []byte("bindings:\n- roles: [king]\n  principals: [ana]\n"), 0o600))
	_, _, err := apikey.Create(t.Context(), keys, apikey.Key{Name: "ana"}, time.Now())
	require.NoError(t, err)
	r := commandRunner{}.runCommand(t, "serve", "--listen", "127.0.0.1:0", "--store", "memory", "--api-keys", keys, "--access", policy)
	require.Equal(t, exit.CodeUsage, r.code)
	require.Contains(t, r.err, policy+`: line 2: bindings[0].roles[0]: unknown role "king"`)
	r = commandRunner{}.runCommand(t, "serve", "--listen", "127.0.0.1:0", "--store", "memory", "--access", policy)
	require.Equal(t, exit.CodeUsage, r.code)
	require.Contains(t, r.err, "--access needs a way to know who calls")
}

// Without a policy, callers have the roles of their credentials and no others.
func TestRolesOfCredentialsCountWithoutAPolicy(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	s := &accessServer{tokens: map[string]string{}}
	for name, roles := range map[string][]string{"reader": {"viewer"}, "stranger": nil} {
		_, token, err := apikey.Create(t.Context(), keys, apikey.Key{Name: name, Roles: roles}, time.Now())
		require.NoError(t, err)
		s.tokens[name] = token
	}
	started := startServerWith(t, server.Options{Store: "memory", CallerOptions: server.CallerOptions{APIKeys: keys}})
	var err error
	s.conn, err = grpc.NewClient(started.server, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.conn.Close()) })
	method, request := graphdv1.ThreadService_ListThreads_FullMethodName, &graphdv1.ListThreadsRequest{}
	require.NoError(t, s.call(t, s.as(t.Context(), "reader"), method, request))
	require.Equal(t, outcomeDenied, describeOutcome(s.call(t, s.as(t.Context(), "stranger"), method, request)))
}
