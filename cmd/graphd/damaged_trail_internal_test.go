package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// changeStoredTrail changes one byte of an entry of a question in a file.
func changeStoredTrail(t *testing.T, path, thread, question string, entry int) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	require.NoError(t, err)
	head, err := store.Head(t.Context(), thread)
	require.NoError(t, err)
	q, err := store.Interrupt(t.Context(), thread, question)
	require.NoError(t, err)
	record := q.Trail.Records[entry-1]
	q.Trail.Records[entry-1] = strings.Replace(record, `"principal":"ana"`, `"principal":"bna"`, 1)
	require.NotEqual(t, record, q.Trail.Records[entry-1])
	_, err = store.Apply(t.Context(), &checkpoint.Change{Thread: thread, Expect: head.Revision, Head: head, Interrupts: []checkpoint.Interrupt{q}})
	require.NoError(t, err)
	require.NoError(t, store.Close())
}

// A client that reads a trail finds an entry that was changed in the store.
func TestAChangedTrailIsNotShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g.db")
	keys, tokens := createPeople(t)
	s := startPeopleProcess(t, "sqlite:"+path, keys, tokens)
	s.putGraph(t, refundGraph)
	id := s.ask(t, "order-7").GetInterruptId()
	s.claim(t, "ana", "order-7")
	verify := func() commandResult {
		t.Helper()
		return s.commands.runCommand(t, "inbox", "trail", "order-7", "--verify", "--token", tokens["ben"])
	}
	require.Contains(t, verify().err, "2 entries, each follows the one before")

	s.process.Kill()
	changeStoredTrail(t, path, "order-7", id, 2)
	s = startPeopleProcess(t, "sqlite:"+path, keys, tokens)
	r := verify()
	require.Equal(t, exit.CodeError, r.code)
	require.Contains(t, r.err, fmt.Sprintf("CHECKPOINT_CORRUPT: question %q: entry 2 of the trail was changed", id))
	require.Empty(t, r.out)
}
