package workers_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/seen"
	"github.com/graphd-dev/graphd/tests/harness"
)

// A worker is given the whole answer, and has to name the digest of the secret that it asked with.
func TestSecretsOfAWorker(t *testing.T) {
	const asked = `{"card":"4111","amount":5}`
	secret := []string{"/card"}
	for name, c := range map[string]struct {
		used   func(a *graphdv1.Answer, u *graphdv1.UsedAnswer)
		reason string
	}{
		"compared":     {func(a *graphdv1.Answer, u *graphdv1.UsedAnswer) { u.SecretSeen = a.GetSecretSeen() }, ""},
		"not compared": {func(*graphdv1.Answer, *graphdv1.UsedAnswer) {}, "NON_DETERMINISTIC_NODE"},
		"another secret": {func(a *graphdv1.Answer, u *graphdv1.UsedAnswer) {
			u.SecretSeen, _ = seen.SecretDigest(a.GetInterruptId(), json.RawMessage(`{"card":"5222","amount":5}`), secret)
		}, "NON_DETERMINISTIC_NODE"},
		"accepted": {func(_ *graphdv1.Answer, u *graphdv1.UsedAnswer) {
			u.Asked = &graphdv1.Ask{Value: harness.NewPayload(`{"card":"5222","amount":5}`), Secret: secret, Drift: graphdv1.Drift_DRIFT_ACCEPT}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, config{})
			given := make(chan *graphdv1.Answer, 1)
			s.startWorker("w1", 4, listSpecs(newChainGraph("g", "a")), map[string]taskFunc{"a": func(_ context.Context, k *runningTask) *graphdv1.TaskResult {
				entries := k.GetJournal().GetEntries()
				if len(entries) == 0 {
					return interruptedResult([]*graphdv1.Ask{{Value: harness.NewPayload(asked), Secret: secret}})
				}
				a := entries[0].GetAnswer()
				given <- a
				use := &graphdv1.UsedAnswer{Seen: a.GetSeen()}
				c.used(a, use)
				k.used = append(k.used, use)
				return completedResult(`{"x":2}`)
			}})
			run := s.runGraph("g", `{"x":1}`)
			id := run.GetOpenInterruptIds()[0]
			q := s.getInterrupt(run, id)
			require.JSONEq(t, `{"card":{"__redacted__":true},"amount":5}`, q.GetValue().GetJson())
			shown, err := seen.DigestHiding("", json.RawMessage(asked), nil, secret)
			require.NoError(t, err)
			require.Equal(t, shown, q.GetSeen())
			run = s.answerRun(run, `{"card":"7777"}`)
			a := <-given
			require.JSONEq(t, `{"card":"7777"}`, a.GetValue().GetJson())
			whole, err := seen.SecretDigest(id, json.RawMessage(asked), secret)
			require.NoError(t, err)
			require.Equal(t, whole, a.GetSecretSeen())
			require.Equal(t, c.reason, run.GetFailure().GetReason(), run.GetFailure().GetMessage())
			q = s.getInterrupt(run, id)
			require.JSONEq(t, `{"card":{"__redacted__":true}}`, q.GetResponse().GetJson())
			if name == "accepted" {
				require.Equal(t, []string{"/card"}, q.GetAccepted())
			}
		})
	}
}
