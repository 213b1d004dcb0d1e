package wire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// sendResult returns what a server reads of the result that a worker sends.
func sendResult(t *testing.T, r message.Result) message.Result {
	t.Helper()
	sent, err := TaskResultToProto(&r, []string{"/of_the_graph"})
	require.NoError(t, err)
	got, refused := TaskResultFromProto(payload.Limits{}, sent)
	require.False(t, refused)
	return got
}

func TestAQuestionOfAWorkerArrivesWhole(t *testing.T) {
	undo := time.Minute
	ask := message.Ask{
		Scope: "s", Key: "k", Index: 2, Reason: "approval", Message: "pay?", Value: `{"card":9007199254740993,"for":"tea"}`,
		Schema: `{"type":"object"}`, TTL: time.Hour, Expiry: checkpoint.ExpiryResumeDefault, Default: `{"card":1}`, Assignees: []string{"ann"},
		Policy:   &approval.Policy{Users: []string{"ann"}, Groups: []string{"boss"}, Approvals: 2, Exclusive: true, RevealGroups: []string{"boss"}},
		Priority: approval.High, Undo: &undo, Drift: checkpoint.DriftAccept, DriftIgnore: []string{"/asked_at"}, Secret: []string{"/card"},
		Steps: []approval.Step{
			{After: time.Minute, Groups: []string{"boss"}}, {After: 2 * time.Minute, Escalates: true, Users: []string{"bob"}, Priority: approval.Urgent},
		},
	}
	require.NoError(t, ask.HideSecrets())
	ask.DriftIgnore = []string{"/of_the_graph", "/asked_at"} // as it is when its drift was computed
	used := message.UsedAnswer{Scope: "s", Key: "k", Index: 2, AskedDigest: "d", HiddenDigest: "h", Asked: &ask}
	sent, err := TaskResultToProto(&message.Result{Asks: []message.Ask{ask}, UsedAnswers: []message.UsedAnswer{used}}, []string{"/of_the_graph"})
	require.NoError(t, err)
	require.JSONEq(t, `{"card":9007199254740993,"for":"tea"}`, sent.GetInterrupted().GetAsks()[0].GetValue().GetJson(), "the server takes the secret parts out")

	got := sendResult(t, message.Result{Asks: []message.Ask{ask}, UsedAnswers: []message.UsedAnswer{used}})
	ask.DriftIgnore = []string{"/asked_at"}
	require.Equal(t, message.Result{Asks: []message.Ask{ask}, UsedAnswers: []message.UsedAnswer{used}}, got)
}

func TestAnUpdateOfAWorkerArrivesWhole(t *testing.T) {
	r := message.Result{
		Update: `{"a":1.0}`, Writes: []checkpoint.Write{{Channel: "a", Value: "2", Overwrite: true}}, ToParent: true,
		Goto: []checkpoint.Send{{Node: "n"}, {Node: "m", Input: "null"}},
	}
	require.Equal(t, r, sendResult(t, r))
	got := sendResult(t, message.Result{Update: `{"a":[1],"b":0,"a":[2],"a":[3]}`, Writes: []checkpoint.Write{{Channel: "c", Value: "4"}}})
	require.Equal(t, message.Result{
		Update: `{"a":[1],"b":0}`,
		Writes: []checkpoint.Write{{Channel: "a", Value: "[2]"}, {Channel: "a", Value: "[3]"}, {Channel: "c", Value: "4"}},
	}, got)
	for _, value := range []payload.JSON{"", "null", "[1,2]", `"text"`} {
		require.Equal(t, message.Result{Update: value}, sendResult(t, message.Result{Update: value}))
	}
}

func TestAFailureOfAWorkerArrivesWhole(t *testing.T) {
	for _, reason := range []string{runtime.FailedNode, runtime.FailedNonDeterministic, runtime.FailedOutputTooLarge, runtime.FailedInvalidUpdate} {
		r := message.Result{Failure: &message.Failure{
			Failure:   checkpoint.Failure{Reason: reason, Type: "T", Message: "m", Stack: "s", Details: map[string]string{"k": "v"}},
			BaseTypes: []string{"B"}, Permanent: true, RetryAfter: time.Minute,
		}}
		require.Equal(t, r, sendResult(t, r))
	}
}
