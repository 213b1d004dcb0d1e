package script

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A command keeps its texts while later calls of the script use the buffers again.
func TestCommandOutlivesItsCall(t *testing.T) {
	s := &Script{hash: "hash"}
	large := strings.Repeat("l", uncopiedSize)
	build := func(key string, n uint64) []any {
		call := NewCall(s, []string{key})
		call.AppendUint(n)
		call.AppendText(large)
		command, _ := call.buildCommand()
		require.True(t, call.recycleBuffers())
		return command
	}
	read := func(command []any) (texts []string) {
		for _, a := range command[4:] {
			text, isText := a.(*string)
			require.True(t, isText)
			texts = append(texts, *text)
		}
		return texts
	}
	first := build("first", 1)
	for n := range uint64(100) {
		command := build("later", n)
		require.Equal(t, "later", command[3])
	}
	require.Equal(t, []any{"evalsha", "hash", 1, "first"}, first[:4])
	require.Equal(t, []string{"1", large}, read(first))
}

// A later call does not keep the texts of an earlier one.
func TestRecycledCallIsEmpty(t *testing.T) {
	call := NewCall(&Script{}, []string{"key"})
	call.AppendText(strings.Repeat("l", uncopiedSize))
	require.True(t, call.recycleBuffers())
	require.Zero(t, call.ArgumentCount())
	require.Zero(t, call.keyCount)
	for _, a := range call.spans[:cap(call.spans)] {
		require.Empty(t, a.large)
	}
}

// Calls with a large buffer or very many arguments are not kept.
func TestLargeCallIsNotRecycled(t *testing.T) {
	s := &Script{}
	large := NewCall(s, nil)
	for range 8 {
		large.AppendText(strings.Repeat("l", uncopiedSize-1))
	}
	require.False(t, large.recycleBuffers(), "bytes")
	many := NewCall(s, nil)
	for range maxReusedArguments + 1 {
		many.AppendText("")
	}
	require.False(t, many.recycleBuffers(), "arguments")
	small := NewCall(s, []string{"key"})
	require.True(t, small.recycleBuffers())
}
