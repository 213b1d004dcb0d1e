package contexts_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/contexts"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// requireUsageError returns the message and the hint of the error.
func requireUsageError(t *testing.T, err error, says string) string {
	t.Helper()
	usage, ok := errors.AsType[*exit.UsageError](err)
	require.True(t, ok, "%v", err)
	require.Contains(t, usage.Message, says)
	require.NotEmpty(t, usage.Hint)
	return usage.Message + "\nhint: " + usage.Hint
}

// newPath returns the path of a file in a folder that does not exist.
func newPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "graphd", "contexts.yaml")
}

func readList(t *testing.T, path string) *contexts.List {
	t.Helper()
	l, err := contexts.ReadList(path)
	require.NoError(t, err)
	return l
}

func TestContextsAreKept(t *testing.T) {
	path := newPath(t)
	require.Empty(t, readList(t, path).Contexts)
	prod := contexts.Context{Name: "prod", Server: "localhost:7701", Token: "t0-ken"}
	require.NoError(t, contexts.AddContext(t.Context(), path, prod, false))
	require.NoError(t, contexts.AddContext(t.Context(), path, contexts.Context{Name: "dev", Server: "localhost:7700"}, false))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	l := readList(t, path)
	require.Empty(t, l.Current, "a new context is not used unless it is asked for")
	c, err := l.FindContext("--context", "prod")
	require.NoError(t, err)
	require.Equal(t, prod, *c)

	require.NoError(t, contexts.UseContext(t.Context(), path, "prod"))
	entries := readList(t, path).ListEntries()
	require.Len(t, entries, 2)
	require.True(t, entries[0].IsCurrent && entries[0].HasToken)
	require.False(t, entries[1].IsCurrent || entries[1].HasToken)
	shown, err := json.Marshal([]any{entries, l.Contexts})
	require.NoError(t, err)
	require.NotContains(t, string(shown), "t0-ken")

	requireUsageError(t, contexts.AddContext(t.Context(), path, contexts.Context{Name: "prod", Server: "x:1"}, false), "exists")
	prod.Server = "localhost:7702"
	require.NoError(t, contexts.AddContext(t.Context(), path, prod, true))
	l = readList(t, path)
	require.Equal(t, "prod", l.Current)
	require.Equal(t, prod, l.Contexts[0])

	wasCurrent, err := contexts.RemoveContext(t.Context(), path, "dev")
	require.NoError(t, err)
	require.False(t, wasCurrent)
	wasCurrent, err = contexts.RemoveContext(t.Context(), path, "prod")
	require.NoError(t, err)
	require.True(t, wasCurrent)
	require.Empty(t, readList(t, path).Current)
	require.NoError(t, contexts.UseContext(t.Context(), path, ""))
}

func TestUnknownContextsMakeNoFile(t *testing.T) {
	path := newPath(t)
	usage := requireUsageError(t, contexts.UseContext(t.Context(), path, "prod"), `NAME "prod" is no context of `+path)
	require.Contains(t, usage, "graphd context add")
	_, err := contexts.RemoveContext(t.Context(), path, "prod")
	requireUsageError(t, err, "prod")
	require.NoError(t, contexts.UseContext(t.Context(), path, ""))
	require.NoDirExists(t, filepath.Dir(path))

	for n := range 12 {
		require.NoError(t, contexts.AddContext(t.Context(), path, contexts.Context{Name: fmt.Sprint("c", n), Server: "localhost:1"}, false))
	}
	_, err = readList(t, path).FindContext("GRAPHD_CONTEXT", "prod")
	usage = requireUsageError(t, err, `GRAPHD_CONTEXT "prod"`)
	require.Contains(t, usage, "want c0, c1, ")
	require.Contains(t, usage, "c9, …; graphd context list")
}

// A probe in a container calls its server, whatever its home is.
func TestAHomeThatIsAFileHasNoContexts(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	require.NoError(t, os.WriteFile(home, nil, 0o600))
	path := filepath.Join(home, "graphd", "contexts.yaml")
	require.Empty(t, readList(t, path).Contexts)
	require.Error(t, contexts.AddContext(t.Context(), path, contexts.Context{Name: "a", Server: "localhost:1"}, false))
}

func TestRelativePathsBecomeAbsolute(t *testing.T) {
	path := newPath(t)
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.WriteFile("token", []byte("t0-ken\n"), 0o600))
	require.NoError(t, contexts.AddContext(t.Context(), path, contexts.Context{Name: "a", Server: "localhost:1", TokenFile: "token"}, false))
	c := readList(t, path).Contexts[0]
	require.Equal(t, "token", filepath.Base(c.TokenFile))
	require.True(t, filepath.IsAbs(c.TokenFile))
	t.Chdir(t.TempDir())
	token, err := c.ReadToken()
	require.NoError(t, err)
	require.Equal(t, "t0-ken", token)
}

func TestWrongContextsAreRefused(t *testing.T) {
	dir := t.TempDir()
	at := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for name, test := range map[string]struct {
		c    contexts.Context
		says string
	}{
		"no name":             {contexts.Context{Server: "localhost:1"}, "NAME is no name"},
		"name of an option":   {contexts.Context{Name: "--prod", Server: "localhost:1"}, "NAME is no name"},
		"name of a path":      {contexts.Context{Name: "a/b", Server: "localhost:1"}, "NAME is no name"},
		"JSON as a name":      {contexts.Context{Name: "{}", Server: "localhost:1"}, "NAME is no name"},
		"long name":           {contexts.Context{Name: strings.Repeat("a", 65), Server: "localhost:1"}, "NAME is no name"},
		"no server":           {contexts.Context{Name: "a"}, "--server is missing"},
		"no port":             {contexts.Context{Name: "a", Server: "localhost"}, "names no port"},
		"no port of a name":   {contexts.Context{Name: "a", Server: "dns:///localhost"}, "names no port"},
		"URL":                 {contexts.Context{Name: "a", Server: "https://localhost:1"}, "https:// is no address"},
		"half a pair":         {contexts.Context{Name: "a", Server: "localhost:1", TLSCert: "c.pem"}, "belong together"},
		"missing CA":          {contexts.Context{Name: "a", Server: "localhost:1", TLSCA: filepath.Join(dir, "none.pem")}, "none.pem: no such file"},
		"no PEM":              {contexts.Context{Name: "a", Server: "localhost:1", TLSCA: at("x.pem", "x")}, "not PEM"},
		"two tokens":          {contexts.Context{Name: "a", Server: "localhost:1", Token: "t0-ken", TokenFile: at("t", "t0-ken")}, "both given"},
		"token with a break":  {contexts.Context{Name: "a", Server: "localhost:1", Token: "t0-ken\n"}, "--token is no token"},
		"long token":          {contexts.Context{Name: "a", Server: "localhost:1", Token: strings.Repeat("t0-ken", 5000)}, "--token is no token"},
		"missing token file":  {contexts.Context{Name: "a", Server: "localhost:1", TokenFile: filepath.Join(dir, "none")}, "can't be read"},
		"empty token file":    {contexts.Context{Name: "a", Server: "localhost:1", TokenFile: at("empty", "\n")}, "is empty"},
		"no token in a file":  {contexts.Context{Name: "a", Server: "localhost:1", TokenFile: at("two", "t0-ken\nt0-ken")}, "has no token"},
		"folder for a token":  {contexts.Context{Name: "a", Server: "localhost:1", TokenFile: dir}, "can't be read"},
		"token in plain text": {contexts.Context{Name: "a", Server: "graphd.example:1", Token: "t0-ken"}, "--token is not sent to graphd.example:1 in plain text"},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			usage := requireUsageError(t, contexts.AddContext(t.Context(), path, test.c, false), test.says)
			require.NotContains(t, usage, "t0-ken")
			require.NoDirExists(t, filepath.Dir(path))
		})
	}
}

func TestBrokenFilesAreRefusedWithTheLine(t *testing.T) {
	const good = "current: a\ncontexts:\n  - name: a\n    server: localhost:1\n"
	for name, test := range map[string]struct{ text, says string }{
		"unknown field": {good + "    tokn: t0-ken\n", "contexts.yaml:5: tokn is an unknown field"},
		"relative path": {good + "    tls-ca: ca.pem\n", "contexts.yaml:5: contexts[0].tls-ca is a relative path"},
		"no server":     {"contexts:\n  - name: a\n", "contexts.yaml:2: contexts[0].server is missing"},
		"twice":         {good + "  - name: a\n    server: localhost:2\n", "contexts.yaml:5: contexts[1].name is the name of another"},
		"no current":    {"current: b\n" + strings.TrimPrefix(good, "current: a\n"), "contexts.yaml:1: current is no context"},
		"token":         {good + "    token: \"t0-ken t0-ken\"\n", "contexts.yaml:5: contexts[0].token is no token"},
		"half a pair":   {good + "    tls-key: /key.pem\n", "tls-cert and tls-key belong together"},
		"no YAML":       {"{", "contexts.yaml"},
		"a list":        {"- a\n", "contexts.yaml:1: a value has the wrong type"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "contexts.yaml")
			require.NoError(t, os.WriteFile(path, []byte(test.text), 0o600))
			_, err := contexts.ReadList(path)
			usage := requireUsageError(t, err, test.says)
			require.NotContains(t, usage, "t0-ken")
			requireUsageError(t, contexts.AddContext(t.Context(), path, contexts.Context{Name: "z", Server: "localhost:1"}, true), test.says)
			requireUsageError(t, contexts.UseContext(t.Context(), path, "a"), test.says)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, test.text, string(text), "a broken file is not written over")
		})
	}
	_, err := contexts.ReadList(t.TempDir())
	requireUsageError(t, err, "no regular file")
}

func TestFilesThatOthersMayReadAreListed(t *testing.T) {
	path := newPath(t)
	tokenFile := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(tokenFile, []byte("t"), 0o600))
	for _, c := range []contexts.Context{
		{Name: "own", Server: "localhost:1", Token: "t"}, {Name: "file", Server: "localhost:1", TokenFile: tokenFile}, {Name: "none", Server: "localhost:1"},
	} {
		require.NoError(t, contexts.AddContext(t.Context(), path, c, false))
	}
	listExposed := func() (all []string) {
		l := readList(t, path)
		for i := range l.Contexts {
			all = append(all, l.ListExposed(&l.Contexts[i])...)
		}
		return all
	}
	require.Empty(t, listExposed())
	require.NoError(t, os.Chmod(path, 0o640))
	require.NoError(t, os.Chmod(tokenFile, 0o604))
	require.Equal(t, []string{path, tokenFile}, listExposed())
}

func TestContextsOfManyCommandsAreAllKept(t *testing.T) {
	path := newPath(t)
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			if err := contexts.AddContext(t.Context(), path, contexts.Context{Name: fmt.Sprint("c", n), Server: "localhost:1"}, false); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Len(t, readList(t, path).Contexts, 20)
}
