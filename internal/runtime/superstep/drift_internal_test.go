package superstep

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// TestDriftFailureIsLegible gives interrupts to the failure that would change how
// it looks, or fill a terminal.
func TestDriftFailureIsLegible(t *testing.T) {
	q := checkpoint.Interrupt{ID: "q", Message: "Pay 1?\x1b[2J\r\u202e?001 yaP\u200b\U000E0041", Value: `{"pay":1}`}
	a := pregel.Ask{
		Key: "\x1b]0;", Scope: "\u2066", Message: strings.Repeat("é", 10_000),
		Value: payload.JSON(`{"pay":"` + strings.Repeat("x", 1<<20) + `","\u001b\u202e":1}`),
	}
	f := driftFailure(&q, &a, pregel.Differences(&q, &a), "")
	require.Equal(t, runtime.FailedNonDeterministic, f.Reason)
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
	require.Contains(t, f.Message, `message: "Pay 1?\u001b[2J\r\u202e?001 yaP\u200b\udb40\udc41" → "ééé`)
	require.Contains(t, f.Message, `; /\u{1b}\u{202e}: nothing → 1; /pay: 1 → "xxx`)
	require.Contains(t, f.Details["differs"], `message, /\u{1b}\u{202e}, /pay`)
	require.Contains(t, f.Message, "memo")
	require.Contains(t, f.Message, "drift_ignore")
	require.Equal(t, "q", f.Details["interruptId"])
}

// TestDriftFailureShowsWhatDiffers looks at the parts that differ alone: values
// are as they were written, and long ones are shown where they differ.
func TestDriftFailureShowsWhatDiffers(t *testing.T) {
	long := strings.Repeat("a", 1000)
	for want, questions := range map[string][2]payload.JSON{
		`: /pay: 100 → 99999. `:                                  {`{"pay":100,"to":"bob"}`, `{"pay":99999,"to":"bob"}`},
		`: /pay: 3000.00 → 1e3. `:                                {`{"pay": 3000.00}`, `{"pay": 1e3}`},
		`: /items/0/price: 9007199254740993 → "9". `:             {`{"a":"` + payload.JSON(long) + `","items":[{"price":9007199254740993}]}`, `{"a":"` + payload.JSON(long) + `","items":[{"price":"9"}]}`},
		`: /a~1b: {"x":[1]} → nothing; /c: nothing → null. `:     {`{"a/b": {"x": [ 1 ]}}`, `{"c":null}`},
		`: value: 1 → "one". `:                                   {`1`, `"one"`},
		`: value: …` + long[:50] + `1" → …` + long[:50] + `2". `: {`"` + payload.JSON(long) + `1"`, `"` + payload.JSON(long) + `2"`},
		`: /0: nothing → 0; /1: nothing → 1; /2: nothing → 2; /3: nothing → 3; /4: nothing → 4; /5: nothing → 5; /6: nothing → 6; ` +
			`/7: nothing → 7; /8: nothing → 8; /9: nothing → 9. `: {`[]`, `[0,1,2,3,4,5,6,7,8,9,10,11]`},
	} {
		q, a := checkpoint.Interrupt{Value: questions[0]}, pregel.Ask{Value: questions[1]}
		require.Contains(t, driftFailure(&q, &a, pregel.Differences(&q, &a), "").Message, "the one that was answered"+want)
	}
	q, a := checkpoint.Interrupt{Schema: `{"type":"string"}`, Message: "Pay?"}, pregel.Ask{Message: "Pay more?"}
	require.Contains(t, driftFailure(&q, &a, pregel.Differences(&q, &a), "").Message,
		`: message: "Pay?" → "Pay more?"; schema: {"type":"string"} → nothing. `)
	q, a = checkpoint.Interrupt{Value: `{"at":1}`, DriftIgnore: []string{"/at"}}, pregel.Ask{Value: `{"at":1}`, DriftIgnore: []string{"value"}}
	require.Contains(t, driftFailure(&q, &a, []string{"drift_ignore"}, "; thrice").Message, `answered: drift_ignore; thrice. `)
}

func TestNextRound(t *testing.T) {
	require.Zero(t, nextRound(nil, &pregel.Ask{}))
	for state, want := range map[checkpoint.InterruptState][2]int{ // the same is asked, something else is
		checkpoint.InterruptOpen: {1, 1}, checkpoint.InterruptCancelled: {1, 2}, checkpoint.InterruptSuperseded: {1, 2},
		checkpoint.InterruptAnswered: {2, 2}, checkpoint.InterruptConsumed: {2, 2}, checkpoint.InterruptExpired: {2, 2},
	} {
		before := &checkpoint.Interrupt{State: state, Round: 1, Message: "Pay?"}
		require.Equal(t, want[0], nextRound(before, &pregel.Ask{Message: "Pay?"}), state)
		require.Equal(t, want[1], nextRound(before, &pregel.Ask{Message: "Pay more?"}), state)
	}
}
