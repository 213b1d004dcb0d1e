package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
)

func TestKeysAreMadeListedAndRevoked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	call := commandRunner{env: map[string]string{"GRAPHD_API_KEYS": path}}
	r := call.runCommand(t, "keys", "create", "--name", "alice", "--role", "answerer,viewer", "--group", "finance", "--tenant", "t")
	require.Equal(t, exit.CodeDone, r.code, r.err)
	token := strings.TrimSuffix(r.out, "\n")
	require.Regexp(t, `^gk_[a-z0-9]{12}_[A-Za-z0-9_-]{43}$`, token, "standard output has the token alone")
	prefix := token[:15]
	require.NotContains(t, r.err, token)
	require.Contains(t, r.err, " of alice, roles answerer,viewer, groups finance, tenants t, ")
	require.Contains(t, r.err, "graphd keys revoke "+prefix+" --file "+path+"\n")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	v, err := apikey.New(apikey.Options{Path: path})
	require.NoError(t, err)
	_, err = v.Authenticate(t.Context(), identity.Credentials{Token: token})
	require.NoError(t, err)

	secret := strings.TrimPrefix(token, prefix+"_")
	r = call.runCommand(t, "keys", "create", "--name", "ci", "--expires", "never", "-o", "jsonl")
	require.Equal(t, exit.CodeDone, r.code, r.err)
	require.Empty(t, r.err)
	var made struct {
		Token string
		Key   struct{ Prefix, State string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.out), &made))
	require.True(t, strings.HasPrefix(made.Token, made.Key.Prefix+"_"))

	r = call.runCommand(t, "keys", "revoke", made.Key.Prefix)
	require.Equal(t, exit.CodeDone, r.code, r.err)
	require.Contains(t, r.out, "key "+made.Key.Prefix+" of ci is revoked since ")

	r = call.runCommand(t, "keys", "list")
	require.Equal(t, exit.CodeDone, r.code, r.err)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, []string{"KEY", "NAME", "ROLES", "GROUPS", "TENANTS", "CREATED", "EXPIRES", "STATE"}, strings.Fields(lines[0]))
	require.Regexp(t, `^`+prefix+` +alice +answerer,viewer +finance +t +20\S+ \S+ +20\S+ \S+ +valid$`, lines[1])
	require.Regexp(t, `^`+made.Key.Prefix+` +ci +- +- +- +20\S+ \S+ +never +revoked$`, lines[2])

	for format, elements := range map[string]int{"json": 1, "jsonl": 2} {
		r = call.runCommand(t, "keys", "list", "-o", format)
		require.Equal(t, exit.CodeDone, r.code, r.err)
		require.NotContains(t, r.out, secret)
		require.NotContains(t, r.out, "sha256")
		require.NotContains(t, r.out, "hash")
		require.Equal(t, elements, strings.Count(r.out, "\n{")+1)
	}
}

func TestWrongCommandsOfKeysAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"no file":      {[]string{"create", "--name", "a"}, "--file is missing"},
		"no name":      {[]string{"create", "--file", path}, `"name" not set`},
		"unknown role": {[]string{"create", "--file", path, "--name", "a", "--role", "boss"}, "want viewer, answerer, linker, starter, worker, author, operator, admin"},
		"format":       {[]string{"create", "--file", path, "--name", "a", "-o", "yaml"}, "-o yaml"},
		"no key":       {[]string{"revoke", "--file", path}, "KEY is missing"},
		"unknown key":  {[]string{"revoke", "gk_aaaaaaaaaaaa", "--file", path}, "does not exist"},
		"no such file": {[]string{"list", "--file", path}, "no such file"},
		"subcommand":   {[]string{"delete"}, "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			r := commandRunner{}.runCommand(t, append([]string{"keys"}, test.args...)...)
			require.Equal(t, exit.CodeUsage, r.code, r.err)
			require.Contains(t, r.err, test.says)
			require.Contains(t, r.err, "hint: ")
			require.Empty(t, r.out)
			require.NoFileExists(t, path)
		})
	}
}

// brokenPipe is an output that takes nothing.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// A key whose token could not be printed exists: the command says which.
func TestATokenThatCanNotBePrintedIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	complaints := newLockedBuffer()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code := commandRunner{}.executeCommand(ctx, brokenPipe{}, complaints, []string{"keys", "create", "--file", path, "--name", "ci"})
	require.Equal(t, exit.CodeError, code)
	all, err := apikey.List(path)
	require.NoError(t, err)
	require.Contains(t, complaints.String(), "graphd keys revoke "+all[0].Prefix()+" --file "+path)
}
