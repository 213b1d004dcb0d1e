package pregel_test

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

var rewriteVectors = flag.Bool("rewrite-vectors", false, "write what is computed into the test vectors, for review")

// vectorsPath is the file of test vectors that workers in other languages share.
const vectorsPath = "../../../docs/seen-vectors.json"

type seenVector struct {
	Name    string   `json:"name"`
	Message string   `json:"message"`
	Schema  string   `json:"schema"`
	Value   string   `json:"value"`
	Ignore  []string `json:"ignore"`
	Secret  []string `json:"secret,omitempty"`

	InterruptID string `json:"interrupt_id,omitempty"`
	Shown       string `json:"shown"`
	Seen        string `json:"seen"`
	SecretSeen  string `json:"secret_seen,omitempty"`
}

// TestSeenVectors holds the digest of an interrupt to its test vectors.
func TestSeenVectors(t *testing.T) {
	text, err := os.ReadFile(vectorsPath)
	require.NoError(t, err)
	var all []seenVector
	require.NoError(t, json.Unmarshal(text, &all))
	for i := range all {
		v := &all[i]
		a := pregel.Ask{
			Message: v.Message, Value: payload.JSON(v.Value), Schema: payload.JSON(v.Schema), DriftIgnore: v.Ignore, Secret: v.Secret,
		}
		require.NoError(t, a.HideSecrets())
		if *rewriteVectors {
			v.Shown, v.Seen, v.SecretSeen = string(payload.NormalText(a.ShownParts())), a.ShownDigest(), a.HiddenDigest(v.InterruptID)
		}
		require.Equal(t, v.SecretSeen, a.HiddenDigest(v.InterruptID), v.Name)
		require.Equal(t, v.Shown, string(payload.NormalText(a.ShownParts())), v.Name)
		require.Equal(t, v.Seen, a.ShownDigest(), v.Name)
		require.Equal(t, v.Seen, (&checkpoint.Interrupt{
			Message: v.Message, Value: a.Value, Schema: a.Schema, DriftIgnore: v.Ignore,
		}).DigestShown(), "a record of an earlier version has no digest")
	}
	if *rewriteVectors {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		require.NoError(t, e.Encode(all))
		require.NoError(t, os.WriteFile(vectorsPath, []byte(b.String()), 0o600))
	}
}

func TestSetDriftDefaults(t *testing.T) {
	for name, c := range map[string]struct {
		ask   pregel.Ask
		graph *graph.Spec
		drift checkpoint.Drift
	}{
		"nothing is said":          {pregel.Ask{}, &graph.Spec{}, checkpoint.DriftAskAgain},
		"no graph":                 {pregel.Ask{Reason: "input"}, nil, checkpoint.DriftAskAgain},
		"an approval":              {pregel.Ask{Reason: "approval"}, &graph.Spec{}, checkpoint.DriftFail},
		"a tool call":              {pregel.Ask{Reason: "tool_call"}, &graph.Spec{}, checkpoint.DriftFail},
		"the graph says":           {pregel.Ask{Reason: "approval"}, &graph.Spec{Drift: "accept"}, checkpoint.DriftAccept},
		"the question says":        {pregel.Ask{Drift: checkpoint.DriftFail}, &graph.Spec{Drift: "accept"}, checkpoint.DriftFail},
		"the question of approval": {pregel.Ask{Reason: "approval", Drift: checkpoint.DriftAskAgain}, nil, checkpoint.DriftAskAgain},
	} {
		a := c.ask
		a.SetDriftDefaults(c.graph)
		require.Equal(t, c.drift, a.Drift, name)
	}
	a := pregel.Ask{DriftIgnore: []string{"/b", "/a"}}
	for range 2 {
		a.SetDriftDefaults(&graph.Spec{DriftIgnore: []string{"/a", "/c"}})
		require.Equal(t, []string{"/a", "/c", "/b"}, a.DriftIgnore)
	}
}

func TestAnswerMatches(t *testing.T) {
	shown := checkpoint.Interrupt{Message: "Pay?", Value: `{"pay": 100}`, Schema: `{"type":"boolean"}`}
	known := pregel.Answer{ShownDigest: shown.DigestShown(), Asked: &shown}
	for name, c := range map[string]struct {
		now  pregel.Ask
		fits bool
	}{
		"as it was":        {pregel.Ask{Message: "Pay?", Value: `{"pay": 100}`, Schema: `{"type":"boolean"}`}, true},
		"spelled anew":     {pregel.Ask{Message: "Pay?", Value: `{"pay":1e2}`, Schema: `{"type":"boolean"}`}, true},
		"another value":    {pregel.Ask{Message: "Pay?", Value: `{"pay":99999}`, Schema: `{"type":"boolean"}`}, false},
		"one more key":     {pregel.Ask{Message: "Pay?", Value: `{"pay":100,"to":"me"}`, Schema: `{"type":"boolean"}`}, false},
		"another message":  {pregel.Ask{Message: "Pay!", Value: `{"pay":100}`, Schema: `{"type":"boolean"}`}, false},
		"another schema":   {pregel.Ask{Message: "Pay?", Value: `{"pay":100}`}, false},
		"ignored just now": {pregel.Ask{Message: "Pay?", Value: `{"pay":100}`, Schema: `{"type":"boolean"}`, DriftIgnore: []string{"/pay"}}, false},
	} {
		require.Equal(t, c.fits, known.Matches(&c.now), name)
		require.Equal(t, c.fits, (&pregel.Answer{ShownDigest: known.ShownDigest}).Matches(&c.now), "%s, by the digest only", name)
	}
	require.False(t, (&pregel.Answer{}).Matches(&pregel.Ask{}), "an answer to nothing fits nothing")
}

func TestDifferences(t *testing.T) {
	shown := checkpoint.Interrupt{Message: "Pay?", Value: `{"pay":100,"to":{"a/b":[1,2]},"x":1}`, Schema: `{"type":"boolean"}`}
	for name, c := range map[string]struct {
		now  pregel.Ask
		want []string
	}{
		"deep inside":      {pregel.Ask{Message: "Pay?", Value: `{"pay":99,"to":{"a/b":[1,3,4]},"y":1,"x":1.0}`, Schema: `{"type":"boolean"}`}, []string{"/pay", "/to/a~1b/1", "/to/a~1b/2", "/y"}},
		"message, schema":  {pregel.Ask{Message: "Pay!", Value: shown.Value, Schema: `{"type":"string"}`}, []string{"message", "schema"}},
		"schema, twice":    {pregel.Ask{Message: "Pay?", Value: shown.Value, Schema: `{"enum":["a"],"type":"string"}`}, []string{"schema"}},
		"no schema":        {pregel.Ask{Message: "Pay?", Value: shown.Value}, []string{"schema"}},
		"another kind":     {pregel.Ask{Message: "Pay?", Value: `"x"`, Schema: shown.Schema}, []string{"value"}},
		"only the ignored": {pregel.Ask{Message: "Pay?", Value: shown.Value, Schema: shown.Schema, DriftIgnore: []string{"/x"}}, []string{"drift_ignore"}},
	} {
		require.Equal(t, c.want, pregel.Differences(&shown, &c.now), name)
	}
	many := pregel.Ask{Value: payload.JSON("[" + strings.Repeat("1,", 50) + "1]")}
	require.Len(t, pregel.Differences(&checkpoint.Interrupt{Value: `[]`}, &many), 10)
}
