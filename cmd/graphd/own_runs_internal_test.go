package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/report"
)

// door is a way in for the answer "yes" to a question. What it refuses has a reason, and a rule
// where it tells one.
type door struct {
	name      string
	tellsRule bool
	answer    func(t *testing.T, caller string, target *graphdv1.AnswerInterruptsRequest_Target) (reason, rule string)
}

func (b *bulkCase) doors() []door {
	byMethod := func(method string) door {
		return door{method, true, func(t *testing.T, caller string, target *graphdv1.AnswerInterruptsRequest_Target) (reason, rule string) {
			t.Helper()
			err := b.answer(t, method, caller, target.GetThreadId(), `"yes"`)
			return reasonOfRefusal(err), metadataOf(err)["rule"]
		}}
	}
	return []door{
		byMethod("Resume"), byMethod("ResumeRun"),
		{"AnswerInterrupts", false, b.answerInBulk},
		{"graphd resume", true, b.answerByCommand},
	}
}

func (b *bulkCase) answerInBulk(t *testing.T, caller string, target *graphdv1.AnswerInterruptsRequest_Target) (reason, rule string) {
	t.Helper()
	outcomes, err := b.interrupts.AnswerInterrupts(b.as(t, caller), answerTargets([]*graphdv1.AnswerInterruptsRequest_Target{target}, `"yes"`, ""))
	require.NoError(t, err)
	outcome, err := outcomes.Recv()
	require.NoError(t, err)
	require.Equal(t, outcome.GetReason() == "", outcome.GetStored())
	return outcome.GetReason(), ""
}

func (b *bulkCase) answerByCommand(t *testing.T, caller string, target *graphdv1.AnswerInterruptsRequest_Target) (reason, rule string) {
	t.Helper()
	r := b.commands.runCommand(t, "resume", target.GetThreadId(), "--value", `"yes"`, "--token", b.tokens[caller], "-o", "json")
	if r.code == exit.CodeDone {
		return "", ""
	}
	var refused struct{ Error report.Report }
	require.NoError(t, json.Unmarshal([]byte(r.err), &refused), r.err)
	return refused.Error.Reason, refused.Error.Metadata["rule"]
}

// The door of links is in tests/links.
func TestNobodyAnswersARunOfTheirOwn(t *testing.T) {
	b := startBulkCase(t)
	doors := b.doors()
	targets := b.askManyAs(t, "ana", "own", len(doors))
	for i, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			reason, rule := d.answer(t, "ana", targets[i])
			require.Equal(t, "ACCESS_DENIED", reason)
			if d.tellsRule {
				require.Equal(t, "not_requester", rule)
			}
			b.requireUntouched(t, targets[i])

			reason, _ = d.answer(t, "ben", targets[i])
			require.Empty(t, reason, "another person answers the same way")
			require.Equal(t, "ben", b.question(t, targets[i].GetThreadId()).GetResponder())
		})
	}
}
