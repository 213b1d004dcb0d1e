package main

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/report"
	"github.com/graphd-dev/graphd/internal/cli/shell"
	"github.com/graphd-dev/graphd/internal/server"
)

// Redis goes away while a server starts, after each of its answers.
func TestAStartWithoutItsStoreSaysWhatToDo(t *testing.T) {
	redis := redistest.Start(t, "--user", "u", "on", ">sesame", "~*", "&*", "+@all")
	proxy := redistest.StartProxy(t, redis)
	name := strings.Replace(proxy.URL(), "://", "://u:sesame@", 1)
	var answers, most atomic.Int64
	proxy.LoseWhen(func() bool { return answers.Add(1) > most.Load() })
	said := map[string]bool{}
	for started := false; !started; most.Add(1) {
		answers.Store(0)
		o := server.Options{Listen: "127.0.0.1:0", Store: name, Graphs: []string{examplesDir}}
		s, err := server.NewServer(t.Context(), o, zap.NewNop(), "test")
		if started = err == nil; started {
			most.Store(1 << 40)
			require.NoError(t, s.DrainServer(context.WithoutCancel(t.Context())))
			break
		}
		var text bytes.Buffer
		report.PrintError(&text, err, output.Text, "", shell.Invocation{})
		line, hint, _ := strings.Cut(text.String(), "\n")
		require.Contains(t, line, "STORE_UNAVAILABLE: the store ", "after %d answers", most.Load())
		require.Contains(t, line, "u:xxxxx@127.0.0.1:"+proxy.Port())
		require.NotContains(t, text.String(), "sesame")
		require.Regexp(t, `^hint: `, hint)
		_, step, _ := strings.Cut(line, proxy.Port())
		step, _, _ = strings.Cut(step, ": ")
		said[step] = true
	}
	require.Greater(t, len(said), 2, "%v", said)
}
