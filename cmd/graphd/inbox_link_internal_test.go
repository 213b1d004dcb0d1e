package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/server"
)

func TestLinksInTheTerminal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "link-keys")
	require.NoError(t, os.WriteFile(file, []byte("k1: "+base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))+"\n"), 0o400))
	s := startPeopleServer(t, func(o *server.Options) {
		o.LinkOptions = server.LinkOptions{LinkKeys: file, LinksURL: "https://answer.example/graphd/", MaxLinkValid: 4 * 24 * time.Hour}
	})
	s.ask(t, "order-7")
	run := func(args ...string) commandResult {
		t.Helper()
		return s.commands.runCommand(t, append([]string{"inbox", "link", "order-7", "--token", s.tokens["ana"]}, args...)...)
	}
	for _, args := range [][]string{nil, {"--for", "carl@example.com", "--group", "finance", "--valid", "3d", "--bound"}, {"--preset", `"yes"`, "--valid", "90m"}} {
		made := run(args...)
		require.Zero(t, made.code, made.err)
		require.Regexp(t, `^https://answer\.example/graphd/a/[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{43}\n$`, made.out)
	}
	require.Contains(t, run("-o", "json").out, `"expireTime"`)
	for want, args := range map[string][]string{
		`--valid "soon" is no duration`: {"--valid", "soon"},
		`--valid "0d" is no duration`:   {"--valid", "0d"},
		"must be 1s to 96h0m0s":         {"--valid", "5d"},
		"--preset":                      {"--preset", "{"},
	} {
		refused := run(args...)
		require.NotZero(t, refused.code, want)
		require.Contains(t, refused.err, want)
	}
}
