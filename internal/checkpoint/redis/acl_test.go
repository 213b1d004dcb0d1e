package redis_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
)

// readDocumentedRights returns the rules of the user that docs/redis.md shows, and those
// that a cluster needs besides.
func readDocumentedRights(t *testing.T) (rights, ofCluster []string) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/redis.md")
	require.NoError(t, err)
	text := regexp.MustCompile("(?s)ACL SETUSER graphd on >PASSWORD (.*?)\n```").FindStringSubmatch(string(page))
	require.NotNil(t, text)
	inCluster := regexp.MustCompile("In a cluster graphd also needs (.*)").FindStringSubmatch(string(page))
	require.NotNil(t, inCluster)
	for _, right := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(inCluster[1], -1) {
		ofCluster = append(ofCluster, right[1])
	}
	return strings.Fields(strings.ReplaceAll(text[1], "\\\n", " ")), ofCluster
}

// listCommands returns the commands that rights allow.
func listCommands(rights []string) (commands []string) {
	for _, right := range rights {
		if command, ok := strings.CutPrefix(right, "+"); ok {
			commands = append(commands, command)
		}
	}
	return commands
}

// addUser gives servers a user with rights, and returns the URLs of graphd.
func addUser(t *testing.T, rights []string, servers ...*redistest.Server) (url func(query string) string) {
	t.Helper()
	rule := []any{"ACL", "SETUSER", "graphd", "on", ">secret"}
	for _, right := range rights {
		rule = append(rule, right)
	}
	for _, server := range servers {
		require.NoError(t, server.Client.Do(t.Context(), rule...).Err())
	}
	return func(query string) string { return "redis://graphd:secret@" + servers[0].Addr() + "/0?" + query }
}

// runEverything runs the suites of a store, each case under keys of its own.
func runEverything(t *testing.T, url func(query string) string) {
	t.Helper()
	var n atomic.Int32
	prefix := func() string { return url(fmt.Sprintf("shared=true&prefix=graphd%d", n.Add(1))) }
	t.Run("contract", func(t *testing.T) {
		checkpointtest.Run(t, func(t *testing.T, _ func() time.Time) checkpointtest.Store {
			t.Helper()
			return openStore(t, prefix())
		}, checkpointtest.OwnClock())
	})
	t.Run("signals", func(t *testing.T) {
		checkpointtest.RunNotifier(t, func(t *testing.T) (here, there checkpointtest.NotifyingStore) {
			t.Helper()
			at := prefix()
			return openStore(t, at), openStore(t, at)
		})
	})
	at := prefix()
	openStore(t, at)
	reader, err := redis.OpenReader(t.Context(), redis.Options{URL: at})
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	_, err = setup.Repair(t.Context(), setup.Options{URL: at}, true)
	require.NoError(t, err)
	_, err = setup.Migrate(t.Context(), setup.Options{URL: at}, false, nil)
	require.NoError(t, err)
}

// readCalledCommands returns the commands that servers have carried out, and checks that
// they have refused none for want of a right.
func readCalledCommands(t *testing.T, servers ...*redistest.Server) (called []string) {
	t.Helper()
	for _, server := range servers {
		log, err := server.Client.Do(t.Context(), "ACL", "LOG").Slice()
		require.NoError(t, err)
		require.Empty(t, log)
		stats := server.Client.Info(t.Context(), "commandstats").Val()
		for _, command := range regexp.MustCompile(`cmdstat_([a-z|]+):`).FindAllStringSubmatch(stats, -1) {
			called = append(called, command[1])
		}
	}
	return called
}

// A user with the documented rights can do all that graphd does with a store, and has no
// right without a use. This is also the contract on one server.
func TestTheDocumentedRightsSuffice(t *testing.T) {
	rights, _ := readDocumentedRights(t)
	server := redistest.Start(t)
	runEverything(t, addUser(t, rights, server))
	used := append(readCalledCommands(t, server), listScriptCommands(t)...)
	// Of a connection that is quiet for long, and of a database other than 0.
	used = append(used, "ping", "select")
	for _, command := range listCommands(rights) {
		require.Contains(t, used, command, "the right is not needed")
	}
	_, err := redis.Open(t.Context(), redis.Options{URL: "redis://graphd:secret@" + server.Addr() + "/7"})
	require.NoError(t, err)
}

// This is also the contract on a cluster. The address is not that of the first node.
func TestTheDocumentedRightsSufficeInACluster(t *testing.T) {
	rights, ofCluster := readDocumentedRights(t)
	servers := redistest.StartCluster(t, 3)
	slices.Reverse(servers)
	runEverything(t, addUser(t, slices.Concat(rights, ofCluster), servers...))
	used := append(readCalledCommands(t, servers...), "asking") // while a slot moves
	for _, command := range listCommands(ofCluster) {
		require.Contains(t, used, command, "the right is not needed")
	}
}

// Rare branches of scripts, and migrations of earlier formats, need no other right.
func TestTheDocumentedRightsCoverTheScripts(t *testing.T) {
	rights, _ := readDocumentedRights(t)
	allowed := listCommands(rights)
	for _, command := range listScriptCommands(t) {
		require.Contains(t, allowed, command)
	}
}

// listScriptCommands returns the commands in the texts of the scripts.
func listScriptCommands(t *testing.T) (commands []string) {
	t.Helper()
	files, err := filepath.Glob("script/lua/*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range regexp.MustCompile(`(?:call|write)\('([A-Z]+)'(?:, '([A-Z]+)')?`).FindAllStringSubmatch(string(text), -1) {
			command := strings.ToLower(found[1])
			if found[2] != "" {
				command += "|" + strings.ToLower(found[2])
			}
			commands = append(commands, command)
		}
	}
	return commands
}

// Another prefix is beyond the user's keys.
func TestTheDocumentedRightsEndAtThePrefix(t *testing.T) {
	rights, _ := readDocumentedRights(t)
	url := addUser(t, rights, redistest.Start(t))
	_, err := redis.Open(t.Context(), redis.Options{URL: url("prefix=other")})
	var refused *setup.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, setup.ProblemAccess, refused.Problem)
	require.NotContains(t, refused.Error(), "secret")
}
