package server

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRaiseGCPercent(t *testing.T) {
	before := debug.SetGCPercent(77)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	raiseGCPercent(func(string) string { return "120" })
	require.Equal(t, 77, debug.SetGCPercent(77), "the operator's word stays")
	raiseGCPercent(func(string) string { return "" })
	require.Equal(t, gcPercent, debug.SetGCPercent(77))
}
