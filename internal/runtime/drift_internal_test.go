package runtime

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// TestDriftFailureIsLegible gives questions to the failure that would change how
// it looks, or fill a terminal.
func TestDriftFailureIsLegible(t *testing.T) {
	q := checkpoint.Interrupt{ID: "q", Message: "Pay 1?\x1b[2J\r\u202e?001 yaP\u200b\U000E0041", Value: `{"pay":1}`}
	a := pregel.Ask{
		Key: "\x1b]0;", Scope: "\u2066", Message: strings.Repeat("é", 10_000),
		Value: payload.JSON(`{"pay":"` + strings.Repeat("x", 1<<20) + `","\u001b\u202e":1}`),
	}
	f := driftFailure(&q, &a, pregel.Differences(&q, &a), "")
	require.Equal(t, FailedNonDeterministic, f.Reason)
	require.True(t, f.Permanent)
	texts := []string{f.Message}
	for _, text := range f.Details {
		texts = append(texts, text)
	}
	for _, text := range texts {
		require.True(t, utf8.ValidString(text))
		require.Less(t, len(text), 4096)
		require.False(t, strings.ContainsAny(text, "\x1b\r\n\u202e\u200b\u2066\U000E0041"), "%q", text)
	}
	require.Contains(t, f.Message, `message, /\u{1b}\u{202e}, /pay`)
	require.Contains(t, f.Message, `"Pay 1?\u001b[2J\r\u202e?001 yaP\u200b\udb40\udc41" {"pay":1}`)
	require.Contains(t, f.Message, "memo")
	require.Contains(t, f.Message, "drift_ignore")
	require.Equal(t, "q", f.Details["interruptId"])
}

func TestNextRound(t *testing.T) {
	require.Zero(t, nextRound(nil))
	for state, want := range map[checkpoint.InterruptState]int{
		checkpoint.InterruptOpen: 1, checkpoint.InterruptCancelled: 1, checkpoint.InterruptSuperseded: 1,
		checkpoint.InterruptAnswered: 2, checkpoint.InterruptConsumed: 2, checkpoint.InterruptExpired: 2,
	} {
		require.Equal(t, want, nextRound(&checkpoint.Interrupt{State: state, Round: 1}), state)
	}
}
