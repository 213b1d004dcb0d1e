package callrecord

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/audit"
	"github.com/graphd-dev/graphd/internal/payload"
)

func value(text string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: text}}
}

// Every method of the protocol is audited, or is known to need none.
func TestEveryMethodHasARow(t *testing.T) {
	var rows, methods []string
	for _, row := range Methods() {
		require.Contains(t, []Kind{Changes, Shows, Task, Plain}, row.Kind)
		rows = append(rows, row.Method)
	}
	for _, file := range serviceFiles() {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				methods = append(methods, "/"+string(service.FullName())+"/"+string(service.Methods().Get(j).Name()))
			}
		}
	}
	require.ElementsMatch(t, methods, rows)
	_, err := NewDescribers(Methods())
	require.NoError(t, err)
}

// All files of the protocol with services are known here.
func TestServiceFilesAreComplete(t *testing.T) {
	var all []string
	protoregistry.GlobalFiles.RangeFilesByPackage("graphd.v1", func(file protoreflect.FileDescriptor) bool {
		if file.Services().Len() > 0 {
			all = append(all, file.Path())
		}
		return true
	})
	var known []string
	for _, file := range serviceFiles() {
		known = append(known, file.Path())
	}
	require.ElementsMatch(t, all, known)
}

// Every value that a request can change something with is in the record.
func TestEveryValueOfAChangeIsRecorded(t *testing.T) {
	for _, row := range Methods() {
		if row.Kind != Changes {
			continue
		}
		method, err := findMethod(row.Method)
		require.NoError(t, err)
		known := slices.Concat(row.Digests, row.Skipped, row.Answers)
		for _, p := range payloadPaths(method.Input(), "", nil) {
			require.True(t, slices.ContainsFunc(known, func(k string) bool { return p == k || strings.HasPrefix(p, k+".") }),
				"%s: the value %s has no digest", row.Method, p)
		}
	}
}

// payloadPaths lists the paths to values.
func payloadPaths(in protoreflect.MessageDescriptor, prefix string, above []protoreflect.FullName) []string {
	var all []string
	if slices.Contains(above, in.FullName()) {
		return nil
	}
	for i := range in.Fields().Len() {
		f := in.Fields().Get(i)
		if f.Message() == nil || f.IsMap() {
			continue
		}
		name := prefix + string(f.Name())
		if f.Message().FullName() == "graphd.v1.Payload" {
			all = append(all, name)
			continue
		}
		all = append(all, payloadPaths(f.Message(), name+".", append(slices.Clone(above), in.FullName()))...)
	}
	return all
}

func TestAWrongPathIsNamed(t *testing.T) {
	for _, row := range []Row{
		{Method: graphService + "Stream", Thread: "run.nothing"},
		{Method: graphService + "Stream", Shown: []string{"request_id.x"}},
		{Method: graphService + "Stream", Skipped: []string{"x"}},
		{Method: graphService + "Nothing"},
		{Method: "/x/y"},
	} {
		_, err := NewDescribers([]Row{row})
		require.ErrorContains(t, err, row.Method)
	}
}

func describe(t *testing.T, method string, request, answer proto.Message, withDigests bool) audit.Record {
	t.Helper()
	all, err := NewDescribers(Methods())
	require.NoError(t, err)
	var r audit.Record
	all[method].Describe(&r, request, withDigests, func(interrupt string) ([]string, bool) {
		if interrupt == "secret" {
			return []string{"/pin"}, true
		}
		return nil, interrupt != "unknown"
	})
	all[method].DescribeAnswer(&r, answer)
	return r
}

// A record has the digest of what is shown of an answer, and none when it is not known what is secret.
func TestDigestsOfSecretAnswers(t *testing.T) {
	answer := func(interrupt, value string) *graphdv1.InterruptResponse {
		return &graphdv1.InterruptResponse{InterruptId: interrupt, Outcome: &graphdv1.InterruptResponse_Value{
			Value: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: value}},
		}}
	}
	request := &graphdv1.ResumeRequest{Resume: &graphdv1.ResumeSpec{Responses: []*graphdv1.InterruptResponse{
		answer("secret", `{"pin":1234}`), answer("secret", `{"pin":5678}`), answer("plain", `{"pin":1234}`), answer("unknown", `{"pin":1234}`), answer("secret", `{`),
	}}}
	q := describe(t, graphService+"Resume", request, nil, true).Questions
	require.Equal(t, "canonical:"+payload.CanonicalDigest(`{"pin":{"__redacted__":true}}`), q[0].Value)
	require.Equal(t, q[0].Value, q[1].Value)
	require.Equal(t, "canonical:"+payload.CanonicalDigest(`{"pin":1234}`), q[2].Value)
	require.Empty(t, q[3].Value)
	require.Empty(t, q[4].Value)
}

// An answer of another form than the secret parts are in may have them at another place. A record of
// its refusal has no digest: the answer is stored nowhere.
func TestNoDigestOfARefusedAnswerWithoutItsSecretParts(t *testing.T) {
	describers, err := NewDescribers(Methods())
	require.NoError(t, err)
	request := &graphdv1.ResumeRequest{Resume: &graphdv1.ResumeSpec{Responses: []*graphdv1.InterruptResponse{
		{InterruptId: "q", Outcome: &graphdv1.InterruptResponse_Value{Value: value(`1234`)}},
		{InterruptId: "q", Outcome: &graphdv1.InterruptResponse_Value{Value: value(`{"pin":1234}`)}},
	}}}
	for outcome, hasDigest := range map[audit.Outcome]bool{audit.OutcomeOK: true, audit.OutcomeFailed: false} {
		r := audit.Record{Outcome: outcome}
		describers[graphService+"Resume"].Describe(&r, request, true, func(string) ([]string, bool) { return []string{"/pin"}, true })
		require.Equal(t, hasDigest, r.Questions[0].Value != "")
		require.NotEmpty(t, r.Questions[1].Value)
	}
}

// What is secret of an answer to several questions is known of each of them, and they have
// records of their own.
func TestNoDigestOfAnAnswerToSeveralQuestions(t *testing.T) {
	request := &graphdv1.AnswerInterruptsRequest{RequestId: "x", Outcome: &graphdv1.AnswerInterruptsRequest_Value{Value: value("1234")}}
	require.Equal(t, map[string][]string{"request_id": {"x"}}, describe(t, interruptService+"AnswerInterrupts", request, nil, true).What)
}

func TestDescribeAnswers(t *testing.T) {
	request := &graphdv1.ResumeRequest{RequestId: "x", Resume: &graphdv1.ResumeSpec{
		ThreadId: "t", Coverage: graphdv1.ResumeCoverage_RESUME_COVERAGE_ALL,
		Responses: []*graphdv1.InterruptResponse{
			{InterruptId: "q1", Outcome: &graphdv1.InterruptResponse_Value{Value: value(`{"b": 1, "a": true}`)}, Note: "secret"},
			{InterruptId: "q2", Outcome: &graphdv1.InterruptResponse_Dismissal{Dismissal: &graphdv1.Dismissal{Reason: "secret"}}},
		},
		Metadata: map[string]string{"k2": "secret", "k1": "secret"},
		Update:   value(`"secret"`),
	}}
	r := describe(t, graphService+"Resume", request, nil, true)
	require.Equal(t, "t", r.Thread)
	require.Equal(t, []audit.Question{
		{ID: "q1", Value: describe(t, graphService+"ResumeRun", &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
			Single: &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: value(`{"a":true,"b":1}`)}},
		}}, nil, true).Questions[0].Value},
		{ID: "q2", Dismissed: true},
	}, r.Questions)
	require.Equal(t, []string{"RESUME_COVERAGE_ALL"}, r.What["resume.coverage"])
	require.Equal(t, []string{"k1", "k2"}, r.What["resume.metadata"])
	require.Equal(t, []string{"x"}, r.What["request_id"])
	require.Regexp(t, "^canonical:[0-9a-f]{32}$", r.What["resume.update"][0])
	text, _, err := audit.Chain{}.AppendRecord(nil, &r)
	require.NoError(t, err)
	require.NotContains(t, string(text), "secret")

	refused := describe(t, graphService+"Resume", request, nil, false)
	require.Equal(t, []audit.Question{{ID: "q1"}, {ID: "q2", Dismissed: true}}, refused.Questions)
	require.NotContains(t, refused.What, "resume.update")
}

func TestDescribeWhatBecameOfACall(t *testing.T) {
	r := describe(t, threadService+"ForkThread", &graphdv1.ForkThreadRequest{SourceThreadId: "a"}, &graphdv1.Thread{ThreadId: "b", Graph: "g", GraphVersion: "3"}, true)
	require.Equal(t, "a g 3", strings.Join([]string{r.Thread, r.Graph, r.Version}, " "))
	require.Equal(t, []string{"b"}, r.What["answer.thread_id"])

	r = describe(t, registryService+"PutGraph", &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Document{Document: "name: g"}},
		&graphdv1.Graph{Graph: "g", Version: "v2"}, true)
	require.Equal(t, "g v2", r.Graph+" "+r.Version)
	require.Regexp(t, "^raw:[0-9a-f]{32}$", r.What["document"][0])

	r = describe(t, registryService+"DeleteGraph", &graphdv1.DeleteGraphRequest{Graph: "g", Force: true}, &graphdv1.DeleteGraphResponse{Versions: []string{"1", "2"}}, true)
	require.Equal(t, map[string][]string{"force": {"true"}, "answer.versions": {"1", "2"}}, r.What)

	r = describe(t, interruptService+"UpdateInterrupt", &graphdv1.UpdateInterruptRequest{
		Interrupt: &graphdv1.Interrupt{ThreadId: "t", InterruptId: "q", Assignees: []string{"bob"}}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"assignees"}},
	}, nil, true)
	require.Equal(t, []audit.Question{{ID: "q"}}, r.Questions)
	require.Equal(t, []string{"bob"}, r.What["interrupt.assignees"])

	r = describe(t, workerService+"Connect", &graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{
		WorkerId: "w", Manifest: &graphdv1.WorkerManifest{BuildId: "b", Nodes: []*graphdv1.ServedNode{{Node: "n"}}},
	}}}, &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Welcome{Welcome: &graphdv1.Welcome{SessionId: "s"}}}, true)
	require.Equal(t, "w", r.Worker)
	require.Equal(t, []string{"s"}, r.What["answer.welcome.session_id"])
	require.Equal(t, []string{"n"}, r.What["hello.manifest.nodes.node"])
}

// Values that are large, deep or no JSON cost one pass over their bytes.
func TestHostileValuesAreDigestedAsTheyAre(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("[", 1<<20), strings.Repeat("[", 100) + strings.Repeat("]", 100), `{"a":`, `"` + strings.Repeat("x", 70<<10) + `"`,
	} {
		r := describe(t, threadService+"UpdateState", &graphdv1.UpdateStateRequest{Values: value(text)}, nil, true)
		require.Regexp(t, "^raw:", r.What["values"][0])
	}
	var many []*graphdv1.StateSuperstep
	for range 1000 {
		many = append(many, &graphdv1.StateSuperstep{Updates: []*graphdv1.StateUpdate{{Values: value("1"), AsNode: "n"}}})
	}
	r := describe(t, threadService+"BulkUpdateState", &graphdv1.BulkUpdateStateRequest{Supersteps: many}, nil, true)
	require.Len(t, r.What["supersteps.updates.values"], maxTexts+1)
}
