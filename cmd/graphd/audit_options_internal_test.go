package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/server"
)

func TestOptionsOfTheAudit(t *testing.T) {
	o, err := readOptions(t, nil, map[string]string{"GRAPHD_AUDIT": "file:/var/log/a.jsonl, stdout"}, "")
	require.NoError(t, err)
	require.Equal(t, []string{"file:/var/log/a.jsonl", "stdout"}, o.Audit)
	require.True(t, o.AuditReads)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--audit", "syslog"}, "no place for records"},
		{[]string{"--audit", "file:"}, "no place for records"},
		{[]string{"--audit", "stdout", "--audit", "stdout"}, "given twice"},
		{[]string{"--audit-queue-bytes", "1"}, "--audit-queue-bytes is 1"},
		{[]string{"--audit-file-bytes", "0"}, "--audit-file-bytes is 0"},
		{[]string{"--audit-files", "0"}, "--audit-files is 0"},
		{[]string{"--audit-sync", "-1s"}, "--audit-sync is -1s"},
	} {
		_, err := readOptions(t, c.args, nil, "")
		require.ErrorContains(t, err, c.says)
	}
}

// startAuditedServer starts a server that records calls in a file.
func startAuditedServer(t *testing.T, path string) commandRunner {
	t.Helper()
	return startServerWith(t, server.Options{Store: "memory", Graphs: []string{examplesDir}, AuditOptions: server.AuditOptions{
		Audit: []string{"file:" + path}, AuditReads: true,
	}})
}

func TestServeRecordsCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	t.Run("serve", func(t *testing.T) {
		c := startAuditedServer(t, path)
		require.Zero(t, c.runCommand(t, "threads", "list").code)
		require.NotZero(t, c.runCommand(t, "threads", "delete", "missing").code)
	})
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Contains(t, lines[0], `"kind":"start"`)
	require.Contains(t, string(text), `"method":"graphd.v1.ThreadService/ListThreads","outcome":"ok"`)
	require.Contains(t, string(text), `"outcome":"failed","code":"NOT_FOUND","reason":"THREAD_NOT_FOUND","thread":"missing"`)
	require.Contains(t, lines[len(lines)-1], `"kind":"stop"`)
}

func TestServeRefusesAFileThatIsNoAudit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	require.NoError(t, os.WriteFile(path, []byte("hello\n"), 0o600))
	r := commandRunner{}.runCommand(t, "serve", "--store", "memory", "--listen", "127.0.0.1:0", "--audit", "file:"+path)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "no record of the audit")
}
