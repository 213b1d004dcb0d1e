package graphfile_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
)

// specWithOtherForms has the fields that exclude those of specWithEveryField.
const specWithOtherForms = `
graph: g
description: other forms
version: v1
channels: { a: {}, b: {}, score: { reducer: remote, function: weigh } }
drift: accept
drift_ignore: [/seen]
nodes:
  timed:
    ask:
      assignees: state.team
      people: { users: state.users, groups: state.groups, approvals: 2, vetoes: 2, agree: answer.ok, not_requester: true, requester: state.a, not_contributor: true, exclusive: true, delegable: true, reveal: { users: [ana], groups: [leads] } }
      priority: high
      undo: 5s
      ttl: "state.?a.orValue('1h')"
      expiry: resume_default
      default_expr: state.b
      secret: [/pin]
      drift: ask_again
      drift_ignore: [/at]
      goto: "answer.ok ? 'stepped' : 'inner'"
  inner: { graph: { name: other, version: v2, persistence: persist } }
  stepped:
    ask:
      people: { users: [ana], groups: [finance] }
      steps:
        - { after: 1h, remind: { users: [ana], groups: [finance] } }
        - { after: 2h, escalate: { users: [ben], groups: [board], priority: urgent } }
        - { after: 3h, default: { ok: false } }
edges: [START -> timed -> stepped, stepped -> END]
conditional_edges: [{ from: inner, router: next, in_worker: true, then: [stepped] }]
`

// A server reads a graph from its stored form when it starts: a field that it does not read back
// would make the graph, and the open questions of its threads, unusable.
func TestEveryFieldIsReadBack(t *testing.T) {
	set := map[string]bool{}
	for _, document := range []string{specWithEveryField, specWithOtherForms} {
		spec, _, err := graphfile.Parse("x.yaml", []byte(document))
		require.NoError(t, err)
		text := graph.EncodeSpec(spec)
		again, _, err := graphfile.Parse("x.json", []byte(text))
		require.NoError(t, err, text)
		require.Equal(t, spec, again)
		require.Equal(t, graph.Digest(spec), graph.Digest(again))
		noteFields(reflect.ValueOf(spec), set)
	}
	for field := range set {
		if !set[field] {
			t.Errorf("no document of this test has %s", field)
		}
	}
}

// noteFields notes the fields of a value, and which of them are set.
func noteFields(v reflect.Value, set map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			noteFields(v.Elem(), set)
		}
	case reflect.Slice:
		for i := range v.Len() {
			noteFields(v.Index(i), set)
		}
	case reflect.Struct:
		if !strings.HasSuffix(v.Type().PkgPath(), "internal/graph") {
			return
		}
		for i := range v.NumField() {
			name := v.Type().Name() + "." + v.Type().Field(i).Name
			set[name] = set[name] || !v.Field(i).IsZero()
			noteFields(v.Field(i), set)
		}
	default:
	}
}
