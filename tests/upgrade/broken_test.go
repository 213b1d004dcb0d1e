package upgrade_test

import (
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/testkit/built"
)

var every = flag.Int("every", 5, "after each how many things that a migration sends it is broken off")

// TestMigrationsThatAreBrokenOff ends a migration after things that it sends, as
// kill -9 would, and sees the next one end it: the store is then the same as after
// one that was left alone.
func TestMigrationsThatAreBrokenOff(t *testing.T) {
	t.Parallel()
	const name = "redis-2-d90251d"
	data, err := os.ReadFile(filepath.Join(frozenStores, name, redisFile))
	require.NoError(t, err)
	listing := unzip(t, data)
	server := redistest.Start(t, "--appendfsync", "no")
	restore(t, server, listing)
	m, err := redis.Migrate(t.Context(), redis.Options{URL: server.URL("")}, false, ignore)
	require.NoError(t, err)
	require.Equal(t, []int{2, redis.Format}, []int{m.From, m.To})
	require.Positive(t, m.Changed)
	want := anonymous(list(t, server))
	require.NotContains(t, want, "migration", "the lock is let go of")

	for sent := 1; ; sent += *every {
		require.NoError(t, server.Client.FlushAll(t.Context()).Err())
		restore(t, server, listing)
		dying := startRelay(t, server.Addr(), sent)
		_, err := redis.Migrate(t.Context(), redis.Options{URL: "redis://" + dying.address()}, false, ignore)
		isOver := dying.close()
		// What the lock of a process that died does by itself, later.
		require.NoError(t, server.Client.Del(t.Context(), "graphd{meta}:migration").Err())
		if err != nil {
			usable(t, server, err)
		}
		_, err = redis.Migrate(t.Context(), redis.Options{URL: server.URL("")}, false, ignore)
		require.NoError(t, err, "after %d", sent)
		require.Equal(t, want, anonymous(list(t, server)), "after %d", sent)
		if !isOver {
			require.Greater(t, sent, 50, "that was not all there is to break off")
			return
		}
	}
}

// usable sees that a store whose migration was broken off either is as before, or
// complete, or refused with what to do.
func usable(t *testing.T, server *redistest.Server, cause error) {
	t.Helper()
	s, err := redis.Open(t.Context(), redis.Options{URL: server.URL("")})
	if err == nil {
		require.NoError(t, s.Close())
		return
	}
	var refused *redis.SetupError
	require.ErrorAs(t, err, &refused, "after %v", cause)
	require.Equal(t, redis.ProblemOlder, refused.Problem)
	require.Contains(t, refused.Want, "graphd store migrate")
}

func ignore(checkpoint.Migration) {}

// anonymous leaves the name of the store out of a listing.
func anonymous(listing []byte) string {
	epoch := regexp.MustCompile(`"\\"epoch\\"","\\"([0-9a-f]{32})\\""`).FindSubmatch(listing)
	if epoch == nil {
		return string(listing)
	}
	return regexp.MustCompile(string(epoch[1])).ReplaceAllString(string(listing), "epoch")
}

// relay passes on what a client sends to a server, until it has done so some
// times: then the client is cut off for good.
type relay struct {
	listen net.Listener
	to     string
	work   sync.WaitGroup

	mu    sync.Mutex
	left  int
	dead  bool
	conns []net.Conn
}

func startRelay(tb testing.TB, to string, sent int) *relay {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	r := &relay{listen: l, to: to, left: sent}
	r.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.work.Go(func() { r.serve(c) })
		}
	})
	return r
}

func (r *relay) address() string { return r.listen.Addr().String() }

func (r *relay) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", r.to)
	if err != nil || !r.keep(client, server) {
		return
	}
	defer func() { _ = server.Close() }()
	r.work.Go(func() { _, _ = io.Copy(client, server) })
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil || !r.passes() {
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (r *relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conns...)
	return !r.dead
}

// passes counts what is sent, and cuts everything off when it was enough.
func (r *relay) passes() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left--; r.left >= 0 {
		return true
	}
	r.dead = true
	for _, c := range r.conns {
		_ = c.Close()
	}
	return false
}

// close ends the relay and reports whether it has cut its client off.
func (r *relay) close() bool {
	r.mu.Lock()
	isOver := r.dead
	r.dead = true
	_ = r.listen.Close()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.work.Wait()
	return isOver
}

// TestServersKeepAMigrationOut sees that nothing is migrated under a server.
func TestServersKeepAMigrationOut(t *testing.T) {
	t.Parallel()
	at := thaw(t, "redis-2")
	_, err := redis.Migrate(t.Context(), redis.Options{URL: at.store}, false, ignore)
	require.NoError(t, err)
	s := serve(t, built.Graphd(t), at.store)
	require.NoError(t, at.redis.Client.HSet(t.Context(), "graphd{meta}:format", "format", 2).Err()) // as if it were an earlier one
	code, said := command(t, built.Graphd(t), "store", "migrate", "--store", at.store)
	require.Equal(t, 1, code)
	require.Contains(t, said, "servers use the store")
	require.Contains(t, said, "stop all of them")
	s.kill()
	require.Eventually(t, func() bool {
		code, said = command(t, built.Graphd(t), "store", "migrate", "--store", at.store)
		return code == 0
	}, patience, patience/100, said)

	file := thaw(t, "sqlite-2")
	code, said = command(t, built.Graphd(t), "store", "migrate", "--store", file.store)
	require.Zero(t, code, said)
	s = serve(t, built.Graphd(t), file.store)
	code, said = command(t, built.Graphd(t), "store", "migrate", "--store", file.store)
	require.Equal(t, 1, code)
	require.Contains(t, said, "is in use by")
	s.kill()
}

// TestServeMigrates starts a server with --migrate on a store of an earlier
// format.
func TestServeMigrates(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"redis-2", "sqlite-2"} {
		s := serve(t, built.Graphd(t), thaw(t, name).store, "--migrate")
		require.Contains(t, s.said.String(), "store was migrated")
		run := s.answer("waiting", `{"ok":true}`, true)
		require.Contains(t, run.GetOutput().GetJson(), "closed")
		s.kill()
	}
}
