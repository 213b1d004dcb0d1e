package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
)

// requireRecentView compares the recent view of a thread, if there is one, with what the store has.
func requireRecentView(t *testing.T, e *engine.Engine, store checkpoint.Store, thread string) (isThere bool) {
	t.Helper()
	const request = "nobody made it"
	recent := engine.FindRecentView(e, thread, request)
	if recent == nil {
		return false
	}
	stored, err := buildThreadView(t.Context(), store, thread, request)
	require.NoError(t, err)
	stored.Head.Now = recent.Head.Now
	require.Equal(t, describeView(t, stored), describeView(t, recent), "thread %s", thread)
	return true
}

// describeView returns a view as text, in which equal times are equal, and no list is an empty one.
func describeView(t *testing.T, v *checkpoint.ThreadView) string {
	t.Helper()
	text, err := json.MarshalIndent(normalizeView(v), "", " ")
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "[]", "null")
}

// normalizeView returns a view with what a store gives to interrupts left out.
func normalizeView(v *checkpoint.ThreadView) checkpoint.ThreadView {
	out := *v
	withoutChange := func(list []checkpoint.Interrupt) []checkpoint.Interrupt {
		var bare []checkpoint.Interrupt
		for _, q := range list {
			q.Change = 0
			bare = append(bare, q)
		}
		return bare
	}
	if v.Interrupts != nil {
		all := withoutChange(*v.Interrupts)
		out.Interrupts = &all
	}
	if v.Pending != nil {
		p := *v.Pending
		p.Interrupts = withoutChange(p.Interrupts)
		out.Pending = &p
	}
	return out
}
