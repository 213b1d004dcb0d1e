package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/output"
)

const answer = `{"decision":"approved_with_conditions","conditions":"10% restocking fee"}`

// runCommand runs the demo without a terminal, and returns its exit code and what it writes.
func runCommand(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = executeCommand(t.Context(), output.IO{In: strings.NewReader(""), Out: &o, Err: &e}, args)
	return code, o.String(), e.String()
}

// The demo on an embedded store has golden files of what it shows.
func TestItShowsWhatTheDemoOnAStoreShows(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("..", "graphd", "testdata", "demo-conditions.golden"))
	require.NoError(t, err)
	code, out, errs := runCommand(t, "--answer", answer)
	require.Equal(t, 0, code, errs)
	require.Empty(t, errs)
	first, shown, _ := strings.Cut(out, "\n")
	require.Regexp(t, `^server 127\.0\.0\.1:\d+  store memory$`, first)
	_, want, _ := strings.Cut(string(golden), "\n")
	for _, r := range []struct{ pattern, with string }{
		{`demo-[a-z2-7]{8}`, "demo-xxxxxxxx"},
		{`\b[0-9a-f]{32}\b`, "ffffffffffffffffffffffffffffffff"},
		{`\b([0-9a-f]{12})-[0-9a-f]{8}\b`, "$1-ffffffff"},
		{`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`, "2000-01-01 00:00:00"},
	} {
		shown = regexp.MustCompile(r.pattern).ReplaceAllString(shown, r.with)
	}
	require.Equal(t, want, shown)
}

func TestItSaysThatNothingIsStored(t *testing.T) {
	again := `go run ./cmd/demo --user '{"id":7}' --answer '{"decision":"approved"}'`
	code, out, errs := runCommand(t, "--user", `{"id":7}`)
	require.Equal(t, 3, code, errs)
	require.Contains(t, out, "waiting for a person; this demo stores nothing; play another with\n  "+again)

	code, _, errs = runCommand(t, "--user", `{"id":7}`, "--answer", `{"decision":"maybe"}`)
	require.Equal(t, 1, code)
	require.Contains(t, errs, "RESPONSE_SCHEMA_MISMATCH")
	require.Contains(t, errs, "this demo stores nothing; play another with")
	require.Contains(t, errs, again)
}

func TestItRunsTheGraphOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.yaml")
	require.NoError(t, os.WriteFile(file, []byte("graph: own\nnodes: {a: {ask: {}}}\nedges: [START -> a -> nowhere]\n"), 0o600))
	code, _, errs := runCommand(t, "--graph", file)
	require.Equal(t, 1, code)
	require.Contains(t, errs, "INVALID_GRAPH")
	require.Contains(t, errs, "nowhere")
}

func TestItRefusesAWrongCommandLine(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"flag":     {[]string{"--stor", "x"}, "error: flag provided but not defined: -stor\nhint: see `go run ./cmd/demo --help`\n"},
		"argument": {[]string{"resume"}, `unexpected argument "resume"`},
		"answer":   {[]string{"--answer", "approved"}, "not JSON"},
		"user":     {[]string{"--user", "{"}, "--user"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := runCommand(t, test.args...)
			require.Equal(t, 2, code, out)
			require.Contains(t, errs, test.want)
		})
	}
	code, help, errs := runCommand(t, "--help")
	require.Equal(t, 0, code)
	require.Empty(t, errs)
	require.Contains(t, help, "what the customer writes")
}
