package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/report"
	"github.com/graphd-dev/graphd/internal/cli/shell"
)

// newRefusal returns a refusal with the details that a server adds. bad are fields
// and their problems, in turn.
func newRefusal(t *testing.T, code codes.Code, reason, message string, meta map[string]string, bad ...string) error {
	t.Helper()
	request := &errdetails.BadRequest{}
	for i := 0; i+1 < len(bad); i += 2 {
		request.FieldViolations = append(request.FieldViolations,
			&errdetails.BadRequest_FieldViolation{Field: bad[i], Description: bad[i+1]})
	}
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Domain: "graphd.dev", Reason: reason, Metadata: meta}}
	if len(bad) > 0 {
		details = append(details, request)
	}
	st, err := status.New(code, message).WithDetails(details...)
	require.NoError(t, err)
	return st.Err()
}

func reportText(err error) string {
	var out strings.Builder
	report.PrintError(&out, err, output.Text, "127.0.0.1:7700", shell.Invocation{Program: []string{"graphd"}})
	return out.String()
}

// TestAProblemIsToldOnce explains refusals whose message ends with the first of
// their problems.
func TestAProblemIsToldOnce(t *testing.T) {
	long := strings.Repeat("x", 400)
	for want, err := range map[string]error{
		"error: INVALID_GRAPH: graph \"g\" has 1 problem: line 3: nodes.a: wrong (X)\n": newRefusal(t, codes.InvalidArgument, "INVALID_GRAPH",
			`graph "g" has 1 problem: line 3: nodes.a: wrong (X)`, nil, "nodes.a", "line 3: wrong (X)"),
		"error: INVALID_GRAPH: graph \"g\" has 1 problem: line 1: no entry (Y)\n": newRefusal(t, codes.InvalidArgument, "INVALID_GRAPH",
			`graph "g" has 1 problem: line 1: no entry (Y)`, nil, "", "line 1: no entry (Y)"),
		"error: INVALID_GRAPH: graph \"g\" has 1 problem: line 3: nodes.a: " + long + " (X)\n": newRefusal(t, codes.InvalidArgument, "INVALID_GRAPH",
			`graph "g" has 1 problem: line 3: nodes.a: `+long+" (X)", nil, "nodes.a", "line 3: "+long[:200]+"…"),
		"error: INVALID_GRAPH: graph \"g\" has 2 problems\n  nodes.a: line 3: wrong (X)\n  nodes.b: line 4: bad (X)\n": newRefusal(t,
			codes.InvalidArgument, "INVALID_GRAPH", `graph "g" has 2 problems, the first: line 3: nodes.a: wrong (X)`,
			map[string]string{"violations": "2"}, "nodes.a", "line 3: wrong (X)", "nodes.b", "line 4: bad (X)"),
		"error: INVALID_GRAPH: graph \"g\" has 9 problems\n  nodes.a: line 3: wrong (X)\n  nodes.b: line 4: bad (X)\n  and 7 more\n": newRefusal(t,
			codes.InvalidArgument, "INVALID_GRAPH", `graph "g" has 9 problems, the first: line 3: nodes.a: wrong (X)`,
			map[string]string{"violations": "9"}, "nodes.a", "line 3: wrong (X)", "nodes.b", "line 4: bad (X)"),
		"error: INVALID_FIELD: a.b: must be set\n  c: must be set\n": newRefusal(t, codes.InvalidArgument, "INVALID_FIELD",
			"a.b: must be set", map[string]string{"violations": "2"}, "a.b", "must be set", "c", "must be set"),
		"error: INVALID_FIELD: there is no input\n  input: must be set\n": newRefusal(t, codes.InvalidArgument, "INVALID_FIELD",
			"there is no input", nil, "input", "must be set"),
	} {
		require.Equal(t, want, reportText(err))
	}
}

// TestARefusalNamesTheOptionOfItsLimit explains refusals with the name of an
// option, and older ones with its value.
func TestARefusalNamesTheOptionOfItsLimit(t *testing.T) {
	for option, meta := range map[string]map[string]string{
		"max-live-runs": {"limit": "max-live-runs", "most": "10000"},
		"max-streams":   {"limit": "4000", "option": "max-streams"},
	} {
		require.Contains(t, reportText(newRefusal(t, codes.ResourceExhausted, "FULL", "full", meta)),
			"\nhint: the limit is an option of the server: --"+option+"\n")
	}
	require.NotContains(t, reportText(newRefusal(t, codes.ResourceExhausted, "FULL", "full", map[string]string{"limit": "64"})), "hint")
	for reason, meta := range map[string]map[string]string{
		"QUOTA_EXCEEDED": {"limit": "open_questions", "most": "3", "of": "tenant"},
		"RATE_LIMITED":   {"limit": "0.5", "option": "calls", "of": "caller"},
	} {
		require.Contains(t, reportText(newRefusal(t, codes.ResourceExhausted, reason, "full", meta)),
			"\nhint: the limit of the "+meta["of"]+" stands in the file that the server has as --quotas\n")
	}
}

// TestARefusalNamesTheCommandThatHelps explains refusals about questions and
// versions.
func TestARefusalNamesTheCommandThatHelps(t *testing.T) {
	for hint, err := range map[string]error{
		"`graphd inbox --thread t1 --filter 'state = \"*\"'` shows what became of it": newRefusal(t, codes.FailedPrecondition,
			"INTERRUPT_ALREADY_RESOLVED", "was answered already", map[string]string{"threadId": "t1", "state": "consumed"}),
		"`graphd inbox --thread t1` lists what is open": newRefusal(t, codes.FailedPrecondition,
			"INTERRUPT_ALREADY_RESOLVED", "was superseded", map[string]string{"threadId": "t1", "state": "superseded", "supersededBy": "q2"}),
		"`graphd graph list -o json` lists the versions": newRefusal(t, codes.FailedPrecondition,
			"GRAPH_VERSION_UNAVAILABLE", "no such version", map[string]string{"graph": "g", "version": "v1"}),
		"move the thread to another version with `graphd run g@VERSION --thread t1`; a deleted one comes back with `graphd graph put FILE`": newRefusal(t,
			codes.FailedPrecondition, "GRAPH_VERSION_UNAVAILABLE", "no such version",
			map[string]string{"graph": "g", "version": "v1", "threadId": "t1"}),
		"`graphd threads --filter 'graph = \"g\"'` shows which version each thread has; --force deletes it all the same": newRefusal(t,
			codes.FailedPrecondition, "GRAPH_IN_USE", "in use", map[string]string{"graph": "g", "threads": "t1, t2"}),
	} {
		require.Contains(t, reportText(err), "\nhint: "+hint+"\n")
	}
}
