package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

func TestWhatAStoreHasLostIsTold(t *testing.T) {
	loss := checkpoint.Loss{MetadataLost: true, LostPartitions: []string{"3", "b"}, PartitionCount: 16}
	for accepted, end := range map[bool]string{true: "the store can be used again, without that\n", false: ""} {
		var out bytes.Buffer
		require.Equal(t, accepted, printLoss(&out, loss, accepted) == nil)
		require.Equal(t, "missing: what the whole store agrees on, and perhaps graphs; put those back with graphd graph put, "+
			"serve --graphs or workers\nmissing: 2 of 16 parts, with all their threads: 3, b\n"+end, out.String())
	}
}

func TestAMigrationIsTold(t *testing.T) {
	require.Equal(t, "migrated: the store from format 2 to 3, with 5 threads, of which 4 have records to write anew",
		migrationText(checkpoint.Migration{From: 2, To: 3, Threads: 5, Changed: 4}, false))
	require.Equal(t, "left as they were, since they can't be read: t, u\n  thread \"t\", run \"r\": damaged",
		unreadableText(&checkpoint.Migration{Unreadable: []string{"t", "u"}, UnreadableRecords: []string{`thread "t", run "r": damaged`}}))
	require.Equal(t, "left as they were, since they can't be read: t",
		unreadableText(&checkpoint.Migration{Unreadable: []string{"t"}}))
	var out bytes.Buffer
	printMigration(&out, checkpoint.Migration{Done: 1, Threads: 2})
	require.Equal(t, "1 of 2 threads\n", out.String())
}

// A store that does not exist has a mistyped name; it is not up to date.
func TestAStoreThatIsNotThereIsNotMigrated(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.db")
	for _, dry := range []string{"--dry-run=true", "--dry-run=false"} {
		r := commandRunner{}.runCommand(t, "store", "migrate", dry, "--store", "sqlite:"+none)
		require.Equal(t, exit.CodeError, r.code, r)
		require.Contains(t, r.err, "no such file")
		require.Contains(t, r.err, "hint: name the file")
		require.NoFileExists(t, none)

		r = commandRunner{}.runCommand(t, "store", "migrate", dry, "--store", "memory")
		require.Equal(t, exit.CodeUsage, r.code, r)
		require.Contains(t, r.err, "nothing to migrate")

		t.Chdir(t.TempDir())
		r = commandRunner{}.runCommand(t, "store", "migrate", dry)
		require.Equal(t, exit.CodeError, r.code, "the default has no file here")

		r = commandRunner{}.runCommand(t, "store", "migrate", dry, "--store", redistest.Start(t).URL(""))
		require.Zero(t, r.code, r)
		require.Equal(t, "nothing to do: nothing is stored there yet\n", r.out)
	}
	require.NoError(t, os.WriteFile(none, nil, 0o600))
	r := commandRunner{}.runCommand(t, "store", "migrate", "--store", "sqlite:"+none)
	require.Zero(t, r.code, r)
	require.Contains(t, r.out, "nothing is stored there yet")
}
