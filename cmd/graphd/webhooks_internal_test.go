package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/exit"
)

func TestWebhookOptionsAreChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "webhooks.yaml")
	require.NoError(t, os.WriteFile(file, []byte("endpoints:\n- name: mail\n  url: https://hooks.example.com\n"), 0o600))
	for _, test := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--webhooks", file}, file + ":2: endpoints[0].secrets has 0 entries: want one, or two while they are exchanged"},
		{[]string{"--webhooks", file + "x"}, "no such file"},
		{[]string{"--webhook-allow", "10.0.0.0/8"}, "--webhook-allow needs --webhooks or --langgraph"},
		{[]string{"--webhooks", file, "--webhook-allow", "a b"}, `--webhook-allow: the pattern "a b"`},
	} {
		got := commandRunner{}.runCommand(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--store", "memory"}, test.flags...)...)
		require.Equal(t, exit.CodeUsage, got.code, got.err)
		require.Contains(t, got.err, test.want)
		require.Contains(t, got.err, "hint: ")
	}
}
