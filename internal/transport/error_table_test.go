package transport_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/quota"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// publishedTable is the published table. A line may be added, and a key to a line;
// no line or key may change or be removed.
const publishedTable = `
INVALID_ARGUMENT INVALID_FIELD field violations limit most need
INVALID_ARGUMENT INVALID_PAYLOAD_JSON field offset limit most
INVALID_ARGUMENT PAYLOAD_TOO_LARGE field sizeBytes limitBytes limit most need checkpointId of
INVALID_ARGUMENT SCHEMA_LIMIT_EXCEEDED field limit most need
INVALID_ARGUMENT INPUT_SCHEMA_MISMATCH graph violations
INVALID_ARGUMENT RESPONSE_SCHEMA_MISMATCH interruptId violations
INVALID_ARGUMENT INVALID_PAGE_TOKEN
INVALID_ARGUMENT INVALID_CURSOR logId
INVALID_ARGUMENT INVALID_GRAPH graph violations limit most need
NOT_FOUND THREAD_NOT_FOUND
NOT_FOUND RUN_NOT_FOUND
NOT_FOUND GRAPH_NOT_FOUND graph
NOT_FOUND NODE_NOT_FOUND node graph
NOT_FOUND CHECKPOINT_NOT_FOUND checkpointId
NOT_FOUND INTERRUPT_NOT_FOUND interruptId openInterruptIds
NOT_FOUND ASSISTANT_NOT_FOUND assistantId
NOT_FOUND ITEM_NOT_FOUND key
NOT_FOUND CRON_NOT_FOUND cronId
ALREADY_EXISTS THREAD_EXISTS
ALREADY_EXISTS RUN_EXISTS
ALREADY_EXISTS GRAPH_EXISTS graph version
ALREADY_EXISTS ASSISTANT_EXISTS assistantId
ALREADY_EXISTS CRON_EXISTS cronId
ALREADY_EXISTS REQUEST_ID_CONFLICT requestId
ALREADY_EXISTS WORKER_ID_TAKEN workerId
FAILED_PRECONDITION THREAD_INTERRUPTED openInterruptIds count
FAILED_PRECONDITION THREAD_NOT_INTERRUPTED threadState
FAILED_PRECONDITION INTERRUPT_ALREADY_RESOLVED interruptId state responder resolveTime supersededBy openInterruptIds
FAILED_PRECONDITION INTERRUPT_EXPIRED interruptId expireTime openInterruptIds
FAILED_PRECONDITION RESPONSE_IN_EFFECT interruptId effectiveTime
FAILED_PRECONDITION INTERRUPT_CLAIMED interruptId claimedBy claimExpireTime
FAILED_PRECONDITION TRAIL_FULL interruptId limitBytes
FAILED_PRECONDITION LINKS_NOT_CONFIGURED
FAILED_PRECONDITION RESPONSES_INCOMPLETE missingInterruptIds
FAILED_PRECONDITION RESPONSE_AMBIGUOUS openInterruptIds count
FAILED_PRECONDITION AMBIGUOUS_NODE nodes
FAILED_PRECONDITION RUN_NOT_CANCELLABLE state
FAILED_PRECONDITION GRAPH_VERSION_UNAVAILABLE graph version
FAILED_PRECONDITION GRAPH_IN_USE graph version threads graphs
FAILED_PRECONDITION TASK_LEASE_LOST taskId
FAILED_PRECONDITION PROTOCOL_MISMATCH supported
FAILED_PRECONDITION NOTHING_TO_DO threadState
FAILED_PRECONDITION STORE_REPLACED
FAILED_PRECONDITION CHANGE_TOO_LARGE limit most need
ABORTED THREAD_BUSY activeRunId state
ABORTED ETAG_MISMATCH current
ABORTED CHECKPOINT_CONFLICT current
ABORTED QUESTION_CHANGED interruptId seen
ABORTED COUNT_CHANGED count expectedCount
ABORTED WORKER_REPLACED workerId
OUT_OF_RANGE CURSOR_TRIMMED oldestSequence headSequence
OUT_OF_RANGE CURSOR_AHEAD oldestSequence headSequence
OUT_OF_RANGE CURSOR_LOST oldestSequence headSequence
RESOURCE_EXHAUSTED THREAD_QUEUE_FULL limit option
RESOURCE_EXHAUSTED RATE_LIMITED limit option of
RESOURCE_EXHAUSTED QUOTA_EXCEEDED limit most of
RESOURCE_EXHAUSTED TOO_MANY_RUNS limit most
RESOURCE_EXHAUSTED TOO_MANY_SUBSCRIBERS limit option
RESOURCE_EXHAUSTED TOO_MANY_GRAPHS limit most
RESOURCE_EXHAUSTED TOO_MANY_ASSISTANTS limit most need
RESOURCE_EXHAUSTED TOO_MANY_ITEMS limit most need
RESOURCE_EXHAUSTED TOO_MANY_CRONS limit most need
RESOURCE_EXHAUSTED ITEM_SEARCH_TOO_BROAD limit most
RESOURCE_EXHAUSTED TOO_MANY_REQUESTS limit most
RESOURCE_EXHAUSTED SLOW_CONSUMER resumeSequence limit most need
RESOURCE_EXHAUSTED STORE_FULL
UNAVAILABLE STORE_UNAVAILABLE
UNAVAILABLE OUTCOME_UNKNOWN
UNAVAILABLE STORE_BUSY
UNAVAILABLE SERVER_DRAINING
UNAVAILABLE NO_WORKER_AVAILABLE node
UNAVAILABLE WORKER_SILENT workerId
PERMISSION_DENIED ACCESS_DENIED rule graph interruptId
UNAUTHENTICATED TOKEN_INVALID field
UNAUTHENTICATED TOKEN_EXPIRED field
UNAUTHENTICATED TOKEN_NOT_YET_VALID field
UNAUTHENTICATED TOKEN_AUDIENCE field
UNAUTHENTICATED TOKEN_ISSUER field
UNAUTHENTICATED TOKEN_ALGORITHM field
UNAUTHENTICATED TOKEN_SIGNATURE field
UNAUTHENTICATED TOKEN_MALFORMED field
UNAUTHENTICATED TOKEN_TOO_LARGE
UNAUTHENTICATED TOKEN_REVOKED
UNAUTHENTICATED TOKEN_CLAIM field
UNAUTHENTICATED TOKEN_UNKNOWN
UNAUTHENTICATED CERTIFICATE_UNMAPPED
UNAUTHENTICATED SESSION_EXPIRED
UNAUTHENTICATED SESSION_INVALID
UNAUTHENTICATED PROXY_UNTRUSTED field
UNAUTHENTICATED PROXY_HEADER_INVALID field
UNAUTHENTICATED NO_CREDENTIALS
UNAVAILABLE KEYS_UNAVAILABLE
UNIMPLEMENTED FEATURE_DISABLED feature field
DEADLINE_EXCEEDED WAIT_TIMEOUT runState
DEADLINE_EXCEEDED DEADLINE_EXCEEDED
CANCELLED CANCELLED
DATA_LOSS CHECKPOINT_CORRUPT checkpointId
INTERNAL INTERNAL errorId
`

func TestTableKeepsItsCodesAndKeys(t *testing.T) {
	var b strings.Builder
	for _, row := range reason.Table() {
		line := append([]string{codeName(row.Code), row.Reason}, row.MetadataKeys...)
		b.WriteString("\n" + strings.Join(line, " "))
	}
	require.Equal(t, publishedTable, b.String()+"\n")
}

func codeName(c codes.Code) string {
	name := c.String()
	if c == codes.Canceled {
		return "CANCELLED"
	}
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

// Every reason the runtime declares has a row, and no row is there twice.
func TestTableKnowsEveryReason(t *testing.T) {
	rows := map[string]bool{}
	for _, row := range reason.Table() {
		require.False(t, rows[row.Reason], "%s is there twice", row.Reason)
		rows[row.Reason] = true
	}
	file, err := parser.ParseFile(token.NewFileSet(), "../runtime/errors.go", nil, 0)
	require.NoError(t, err)
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(v.Names[0].Name, "Reason") {
			return true
		}
		literal, ok := v.Values[0].(*ast.BasicLit)
		require.True(t, ok)
		require.True(t, rows[strings.Trim(literal.Value, `"`)], "%s has no row", v.Names[0].Name)
		found++
		return true
	})
	require.Greater(t, found, 40)
}

// sampleErrors has one error for each error that a package below exports.
// ErrInvalid, ErrRequestNotFound, ErrElsewhere, ErrMoved and ErrSiblingFailed never
// leave the runtime, and ErrVersionsChanged never leaves the registry: if a client gets
// one, that is a defect.
func sampleErrors() map[string]struct {
	err    error
	reason string
} {
	syntax := payload.Validate("{", payload.Limits{})
	large := payload.Validate("[1,2]", payload.Limits{MaxBytes: 2})
	_, kind := payload.Fields("[]")
	_, operand := payload.Add("true", "1")
	_, message := payload.MergeMessages(nil, "[1]", nil)
	return map[string]struct {
		err    error
		reason string
	}{
		"checkpoint.ErrThreadNotFound":     {checkpoint.ErrThreadNotFound, "THREAD_NOT_FOUND"},
		"checkpoint.ErrCheckpointNotFound": {checkpoint.ErrCheckpointNotFound, "CHECKPOINT_NOT_FOUND"},
		"checkpoint.ErrRunNotFound":        {checkpoint.ErrRunNotFound, "RUN_NOT_FOUND"},
		"checkpoint.ErrInterruptNotFound":  {checkpoint.ErrInterruptNotFound, "INTERRUPT_NOT_FOUND"},
		"checkpoint.ErrRequestNotFound":    {checkpoint.ErrRequestNotFound, "INTERNAL"},
		"checkpoint.ErrInvalid":            {checkpoint.ErrInvalid, "INTERNAL"},
		"checkpoint.ErrGraphExists":        {checkpoint.ErrGraphExists, "GRAPH_EXISTS"},
		"checkpoint.ErrGraphNotFound":      {checkpoint.ErrGraphNotFound, "GRAPH_VERSION_UNAVAILABLE"},
		"checkpoint.ErrVersionsChanged":    {checkpoint.ErrVersionsChanged, "INTERNAL"},
		"checkpoint.ErrConflict":           {checkpoint.ErrConflict, "CHECKPOINT_CONFLICT"},
		"checkpoint.ErrTrimmed":            {checkpoint.ErrTrimmed, "CURSOR_TRIMMED"},
		"checkpoint.ErrOutcomeUnknown":     {checkpoint.ErrOutcomeUnknown, "OUTCOME_UNKNOWN"},
		"checkpoint.ErrUnavailable":        {checkpoint.ErrUnavailable, "STORE_UNAVAILABLE"},
		"checkpoint.ErrStoreReplaced":      {checkpoint.ErrStoreReplaced, "STORE_REPLACED"},
		"checkpoint.ErrStoreFull":          {checkpoint.ErrStoreFull, "STORE_FULL"},
		"checkpoint.ErrStoreBusy":          {checkpoint.ErrStoreBusy, "STORE_BUSY"},
		"checkpoint.LargeError":            {&checkpoint.LargeError{}, runtime.ReasonInternal}, // the engine reads again
		"checkpoint.SizeError":             {&checkpoint.SizeError{Limit: "max-change-rows", Unit: "rows", Max: 1, Actual: 2}, "CHANGE_TOO_LARGE"},
		"checkpoint.ErrCorrupt":            {checkpoint.ErrCorrupt, "CHECKPOINT_CORRUPT"},
		"graph.BuildError":                 {&graph.BuildError{Graph: "g"}, "INVALID_GRAPH"},
		"graph.LimitError":                 {&graph.LimitError{Limit: "max-value-bytes", Problem: "large"}, "PAYLOAD_TOO_LARGE"},
		"payload.SyntaxError":              {syntax, "INVALID_PAYLOAD_JSON"},
		"payload.LimitError":               {large, "PAYLOAD_TOO_LARGE"},
		"payload.KindError":                {kind, "INVALID_FIELD"},
		"payload.OperandError":             {operand, "INVALID_FIELD"},
		"payload.MessageError":             {message, "INVALID_FIELD"},
		"quota.ExceededError":              {&quota.ExceededError{Limit: quota.Streams}, "QUOTA_EXCEEDED"},
		"runtime.ErrElsewhere":             {runtime.ErrElsewhere, "INTERNAL"},
		"runtime.ErrMoved":                 {runtime.ErrMoved, "INTERNAL"},
		"runtime.ErrWebhookRefused":        {runtime.ErrWebhookRefused, "INTERNAL"},
		"runtime.ErrSiblingFailed":         {runtime.ErrSiblingFailed, "INTERNAL"},
		"runtime.Error":                    {runtime.Errorf("THREAD_BUSY", "busy"), "THREAD_BUSY"},
	}
}

func TestEveryErrorOfTheLayersBelowHasAReason(t *testing.T) {
	all := sampleErrors()
	for _, memory := range []string{"checkpoint", "graph", "payload", "quota", "runtime"} {
		for _, name := range exportedErrors(t, "../"+memory) {
			require.Contains(t, all, memory+"."+name, "an error that transport has not heard of")
		}
	}
	e := newFakeEngine()
	c := startServer(t, e)
	for name, s := range all {
		require.Error(t, s.err, name)
		for _, err := range []error{s.err, fmt.Errorf("around: %w", s.err)} {
			e.err = err
			_, got := c.GetThread(t.Context(), &graphdv1.GetThreadRequest{ThreadId: "t1"})
			require.Equal(t, s.reason, requireErrorInfo(t, got).GetReason(), name)
		}
	}
}

// A limit is reported in the same way when the runtime refuses and when its error
// passes through.
func TestALimitIsReportedInOneWay(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e)
	for limit, want := range map[string]string{"max-value-bytes": "PAYLOAD_TOO_LARGE", "max-sends": "INVALID_FIELD"} {
		over := &graph.LimitError{Limit: limit, Max: 5, Needed: 6, Channel: "x", Problem: "too much"}
		for _, err := range []error{over, runtime.LimitRefusal("values", over)} {
			e.err = err
			_, got := c.GetThread(t.Context(), &graphdv1.GetThreadRequest{ThreadId: "t1"})
			told := requireErrorInfo(t, got)
			require.Equal(t, want, told.GetReason())
			require.Equal(t, []string{limit, "5", "6"}, []string{
				told.GetMetadata()["limit"], told.GetMetadata()["most"], told.GetMetadata()["need"],
			})
		}
	}
}

// exportedErrors lists the Err variables and the types with an Error method.
func exportedErrors(t *testing.T, dir string) []string {
	t.Helper()
	//nolint:staticcheck // one folder without build tags needs no more than this
	packages, err := parser.ParseDir(token.NewFileSet(), dir, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var names []string
	for _, p := range packages {
		if strings.HasSuffix(p.Name, "_test") {
			continue
		}
		ast.Inspect(p, func(n ast.Node) bool {
			switch d := n.(type) {
			case *ast.ValueSpec:
				if name := d.Names[0].Name; strings.HasPrefix(name, "Err") && ast.IsExported(name) {
					names = append(names, name)
				}
			case *ast.FuncDecl:
				if d.Name.Name == "Error" && d.Recv != nil {
					star, ok := d.Recv.List[0].Type.(*ast.StarExpr)
					require.True(t, ok)
					name, ok := star.X.(*ast.Ident)
					require.True(t, ok)
					if name.IsExported() {
						names = append(names, name.Name)
					}
				}
			}
			return true
		})
	}
	return names
}

// requireErrorInfo returns the one ErrorInfo of an error after checking its shape.
func requireErrorInfo(t *testing.T, err error) *errdetails.ErrorInfo {
	t.Helper()
	require.Error(t, err)
	st := status.Convert(err)
	var found *errdetails.ErrorInfo
	for _, d := range st.Details() {
		if i, ok := d.(*errdetails.ErrorInfo); ok {
			require.Nil(t, found, "two ErrorInfo")
			found = i
		}
	}
	require.NotNil(t, found, "no ErrorInfo in %v", err)
	require.LessOrEqual(t, len(st.Details()), 3)
	require.Equal(t, "graphd.dev", found.GetDomain())
	require.LessOrEqual(t, proto.Size(st.Proto()), 6<<10)
	return found
}

// fieldViolations returns the BadRequest of an error.
func fieldViolations(t *testing.T, err error) []*errdetails.BadRequest_FieldViolation {
	t.Helper()
	for _, d := range status.Convert(err).Details() {
		if bad, ok := d.(*errdetails.BadRequest); ok {
			return bad.GetFieldViolations()
		}
	}
	require.Fail(t, "no BadRequest", "%v", err)
	return nil
}

func TestErrorNamesItsThreadAndRun(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e)
	e.err = runtime.Errorf(runtime.ReasonThreadBusy, "run is active").With("activeRunId", "run-9")
	_, err := c.GetRun(t.Context(), &graphdv1.GetRunRequest{ThreadId: "t1", RunId: "run-1"})
	require.Equal(t, codes.Aborted, status.Code(err))
	require.Equal(t, map[string]string{"threadId": "t1", "runId": "run-1", "activeRunId": "run-9"},
		requireErrorInfo(t, err).GetMetadata())
}

func TestInternalErrorKeepsItsCauseToItself(t *testing.T) {
	core, logs := observer.New(zapcore.ErrorLevel)
	e := newFakeEngine()
	c := startServer(t, e, func(o *transport.Options) { o.Log = zap.New(core) })
	e.err = errors.New("password=hunter2 refused")
	_, err := c.GetThread(t.Context(), &graphdv1.GetThreadRequest{ThreadId: "t1"})
	require.Equal(t, codes.Internal, status.Code(err))
	id := requireErrorInfo(t, err).GetMetadata()["errorId"]
	require.NotEmpty(t, id)
	require.NotContains(t, err.Error(), "hunter2")
	logged := logs.FilterField(zap.String("error_id", id)).All()
	require.Len(t, logged, 1)
	require.Contains(t, fmt.Sprint(logged[0].ContextMap()["cause"]), "hunter2")
	require.Equal(t, 1, logs.Len(), "a call has one line")
	require.Equal(t, "t1", logged[0].ContextMap()["thread"])
}

func TestPanicIsInternalAndTheServerLives(t *testing.T) {
	e := newFakeEngine()
	e.panics = true
	c := startServer(t, e)
	_, err := c.CreateThread(t.Context(), &graphdv1.CreateThreadRequest{})
	require.Equal(t, "INTERNAL", requireErrorInfo(t, err).GetReason())
	stream, err := c.Stream(t.Context(), &graphdv1.StreamRequest{Run: &graphdv1.RunSpec{}})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, "INTERNAL", requireErrorInfo(t, err).GetReason())
	_, err = c.GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{})
	require.NoError(t, err)
}

func TestManyProblemsFitIntoTrailers(t *testing.T) {
	build := &graph.BuildError{Graph: "g"}
	for i := range 200 {
		build.Problems = append(build.Problems, graph.Problem{
			Path: fmt.Sprintf("nodes[%d]", i), Line: i + 1, Reason: graph.ReasonUnknownNode,
			Message: strings.Repeat("ä", 4000) + "\xff",
		})
	}
	r := &fakeRegistry{err: build}
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.Registry = r })
	_, err := c.PutGraph(t.Context(), &graphdv1.PutGraphRequest{
		Definition: &graphdv1.PutGraphRequest_Document{Document: "name: g"},
	})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.Equal(t, "200", requireErrorInfo(t, err).GetMetadata()["violations"])
	shown := fieldViolations(t, err)
	require.Greater(t, len(shown), 5)
	require.Equal(t, "nodes[0]", shown[0].GetField())
	require.True(t, strings.HasPrefix(shown[0].GetDescription(), "line 1: "))
}

func TestUnavailableStoreAsksToRetry(t *testing.T) {
	e := newFakeEngine()
	e.err = fmt.Errorf("append: %w", checkpoint.ErrUnavailable)
	c := startServer(t, e)
	_, err := c.StartRun(t.Context(), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{}})
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Equal(t, "STORE_UNAVAILABLE", requireErrorInfo(t, err).GetReason())
	_, isRetry := status.Convert(err).Details()[1].(*errdetails.RetryInfo)
	require.True(t, isRetry)
}

func TestCallerThatIsGoneGetsNoInternalError(t *testing.T) {
	core, logs := observer.New(zapcore.ErrorLevel)
	e := newFakeEngine()
	e.err = fmt.Errorf("read: %w", context.Canceled)
	c := startServer(t, e, func(o *transport.Options) { o.Log = zap.New(core) })
	_, err := c.GetThread(t.Context(), &graphdv1.GetThreadRequest{ThreadId: "t1"})
	require.Equal(t, codes.Canceled, status.Code(err))
	require.Zero(t, logs.Len())
}

// TestPartsThatFailAreLogged answers a question in a bulk call whose cause no client may learn.
func TestPartsThatFailAreLogged(t *testing.T) {
	core, logs := observer.New(zapcore.ErrorLevel)
	e := newFakeEngine()
	e.err = errors.New("secret cause")
	c := startServer(t, e, func(o *transport.Options) { o.Log = zap.New(core) })
	stream, err := c.AnswerInterrupts(t.Context(), &graphdv1.AnswerInterruptsRequest{
		Which: &graphdv1.AnswerInterruptsRequest_Targets_{Targets: &graphdv1.AnswerInterruptsRequest_Targets{
			Targets: []*graphdv1.AnswerInterruptsRequest_Target{{ThreadId: "t1", InterruptId: "i1"}},
		}},
		Outcome: &graphdv1.AnswerInterruptsRequest_Value{Value: newJSONPayload("1")},
	})
	require.NoError(t, err)
	outcome, err := stream.Recv()
	require.NoError(t, err)
	require.Equal(t, runtime.ReasonInternal, outcome.GetReason())
	require.NotContains(t, outcome.String(), "secret cause")
	id, found := strings.CutPrefix(outcome.GetMessage(), "internal error ")
	require.True(t, found)
	logged := logs.FilterField(zap.String("error_id", id)).All()
	require.Len(t, logged, 1)
	require.Equal(t, "secret cause", logged[0].ContextMap()["cause"])
	require.Equal(t, "t1", logged[0].ContextMap()["thread"])
}
