package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var updateGolden = flag.Bool("update", false, "write the golden files instead of comparing")

func TestTheDemoShowsTheWholeReview(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"conditions": {[]string{"--answer", `{"decision":"approved_with_conditions","conditions":"10% restocking fee"}`}, 0},
		"rejected": {[]string{
			"--request", "我要退款", "--user", `{"shop": 9007199254740993}`,
			"--answer", `{"decision":"rejected","reason":"too late"}`,
		}, 0},
		"question":   {[]string{"--request", "When do you open?"}, 0},
		"unanswered": {nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := commandRunner{}.runCommand(t, append([]string{"demo", "--store", "sqlite:" + filepath.Join(dir, "demo.db")}, test.args...)...)
			require.Equal(t, test.code, r.code, r.err)
			requireGolden(t, name, normalizeOutput(r.out, dir))
		})
	}
}

func TestTheDemoRefusesAWrongAnswer(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "demo.db")
	r := commandRunner{}.runCommand(t, "demo", "--store", store, "--answer", `{"decision":"approved_with_conditions"}`)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "RESPONSE_SCHEMA_MISMATCH")
	require.Contains(t, r.err, "conditions: is missing")
	require.Contains(t, r.err, "graphd demo resume demo-")
	r = commandRunner{}.runCommand(t, "demo", "--answer", `approved`)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "not JSON")
}

// normalizeOutput replaces the parts that differ between runs by words of the same
// length, so that columns stay aligned.
func normalizeOutput(text, dir string) string {
	for _, r := range []struct{ pattern, with string }{
		{regexp.QuoteMeta(dir), "DIR"},
		{`demo-[a-z2-7]{8}`, "demo-xxxxxxxx"},
		{`127\.0\.0\.1:\d+`, "127.0.0.1:PORT"},
		{`\b[0-9a-f]{32}\b`, "ffffffffffffffffffffffffffffffff"},
		{`\b([0-9a-f]{12})-[0-9a-f]{8}\b`, "$1-ffffffff"},
		{`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`, "2000-01-01 00:00:00"},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.with)
	}
	return text
}

func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "demo-"+name+".golden")
	if *updateGolden {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestTheDemoAsksAtATerminal(t *testing.T) {
	state := t.TempDir()
	c := commandRunner{isTerminal: true, stdin: "approved_with_conditions\n:done\n5% fee\ny\n"}
	r := c.runCommand(t, "demo", "--store", "sqlite:"+filepath.Join(state, "a.db"))
	require.Equal(t, 0, r.code, r.err)
	require.Contains(t, r.out, "conditions (text)> ")
	require.Contains(t, r.out, "under this condition: 5% fee")

	c.stdin = ""
	r = c.runCommand(t, "demo", "--store", "sqlite:"+filepath.Join(state, "b.db"))
	require.Equal(t, 3, r.code, r.err)
	require.Regexp(t, `\n  graphd demo resume demo-\S+ --store \S+\n`, r.out, "the command asks: it needs no JSON")
}

func TestTheDemoWaitsOnAfterAWrongAnswer(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	r := commandRunner{}.runCommand(t, "demo", "--answer", `{"decision":"maybe"}`)
	require.Equal(t, 1, r.code)
	again := regexp.MustCompile(`graphd demo resume (demo-\S+) --store (\S+) --answer '([^']*)'`).FindStringSubmatch(r.err)
	require.NotNil(t, again, r.err)
	for _, test := range []struct {
		answer string
		code   int
	}{{`{"decision":"perhaps"}`, 1}, {again[3], 0}} {
		r = commandRunner{}.runCommand(t, "demo", "resume", again[1], "--store", again[2], "--answer", test.answer)
		require.Equal(t, test.code, r.code, r.err)
	}
	require.Contains(t, r.out, "Your refund has been approved.")
	left, err := filepath.Glob(filepath.Join(state, "graphd", "*"))
	require.NoError(t, err)
	require.Empty(t, left, "a demo removes its store when it has ended")
}
