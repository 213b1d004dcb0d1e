package contain_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/contain"
)

type panickingError struct{}

func (panickingError) Error() string { panic("in Error") }

func TestCallCatchesWhateverIsPanickedWith(t *testing.T) {
	require.Nil(t, contain.Call(func() {}))
	for _, c := range []struct {
		value any
		want  string
	}{
		{"a defect", "a defect"},
		{errors.New("an error"), "an error"},
		{panickingError{}, "PANIC=Error method: in Error"},
		{strings.Repeat("x", 1<<20), "xxx"},
	} {
		p := contain.Call(func() { panic(c.value) })
		require.NotNil(t, p)
		require.Contains(t, p.Value, c.want)
		require.Less(t, len(p.Value), 2000)
		require.Contains(t, string(p.Stack), "contain_test.go")
		require.ErrorContains(t, p, "panic: ")
	}
	p := contain.Call(func() {
		require.Positive(t, 1/len(t.Name()[:0]))
	})
	require.Contains(t, p.Value, "divide by zero")
}

func TestFuncTellsOfAPanic(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	caught := contain.LogPanic(zap.New(core), "a goroutine panicked")
	contain.Func(func() {}, caught)()
	require.Zero(t, logs.Len())
	contain.Func(func() { panic("a defect") }, caught)()
	require.Equal(t, 1, logs.Len())
	require.Equal(t, "a defect", logs.All()[0].ContextMap()["panic"])
	contain.Func(func() { panic("a defect") }, func(*contain.PanicError) { panic("another") })()
}
