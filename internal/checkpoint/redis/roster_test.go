package redis_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
)

// staff is a server on a roster.
type staff struct {
	checkpoint.Post

	store *redis.Store
	news  chan struct{}
}

func enlist(t *testing.T, url, server string, beat time.Duration) *staff {
	t.Helper()
	s, err := redis.Open(t.Context(), redis.Options{URL: url, Beat: beat})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	w := &staff{store: s, news: make(chan struct{}, 1)}
	w.Post = s.Enlist(server, func() {
		select {
		case w.news <- struct{}{}:
		default:
		}
	})
	t.Cleanup(w.Close)
	return w
}

// learns waits until a server knows what the others take.
func (w *staff) learns(t *testing.T, want ...checkpoint.Station) {
	t.Helper()
	if len(want) == 0 {
		want = []checkpoint.Station{}
	}
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for {
		others := w.Others()
		if len(others) == len(want) && (len(want) == 0 || equal(want, others)) {
			return
		}
		select {
		case <-w.news:
		case <-late.C:
			require.Equal(t, want, w.Others())
			return
		}
	}
}

func equal(a, b []checkpoint.Station) bool {
	for i := range a {
		if a[i].Server != b[i].Server || len(a[i].Serves) != len(b[i].Serves) ||
			!slices.Equal(a[i].Claims.Holds, b[i].Claims.Holds) || !slices.Equal(a[i].Claims.Awaits, b[i].Claims.Awaits) {
			return false
		}
		for j := range a[i].Serves {
			if a[i].Serves[j] != b[i].Serves[j] {
				return false
			}
		}
	}
	return true
}

func station(server string, serves ...checkpoint.Served) checkpoint.Station {
	return checkpoint.Station{Server: server, Serves: serves}
}

func TestRoster(t *testing.T) {
	both := func(t *testing.T, servers []*redistest.Server) {
		t.Helper()
		t.Run("tells at once", func(t *testing.T) { tellsAtOnce(t, servers[0].URL("shared=true&prefix=told")) })
		t.Run("forgets the silent", func(t *testing.T) { forgetsTheSilent(t, servers[0].URL("shared=true"), servers) })
	}
	t.Run("on one server", func(t *testing.T) {
		both(t, []*redistest.Server{redistest.Start(t, "--appendfsync", "no")})
	})
	t.Run("on a cluster", func(t *testing.T) { both(t, redistest.StartCluster(t, 2)) })
}

// Servers tell one another at once what their workers take.
func tellsAtOnce(t *testing.T, url string) {
	t.Helper()
	const rarely = time.Hour // only what is told can be known
	a, b := enlist(t, url, "a", rarely), enlist(t, url, "b", rarely)
	odd := checkpoint.Served{Graph: `g " 9007199254740993 ü`, Version: "v 1", Node: "\n"}
	all := checkpoint.Served{Graph: "g"}
	a.Serve([]checkpoint.Served{odd, all})
	b.learns(t, station("a", odd, all))
	require.Empty(t, a.Others(), "a server is not told of itself")
	b.Serve([]checkpoint.Served{all})
	a.learns(t, station("b", all))
	c := enlist(t, url, "c", rarely)
	c.learns(t, station("a", odd, all), station("b", all))
	a.Serve([]checkpoint.Served{all})
	b.learns(t, station("a", all))
	c.learns(t, station("a", all), station("b", all))
	claims := checkpoint.Claims{Holds: []string{"t1", `"ü`}, Awaits: []string{"t2"}}
	a.Claim(claims)
	b.learns(t, checkpoint.Station{Server: "a", Serves: []checkpoint.Served{all}, Claims: claims})
	a.Serve(nil)
	b.learns(t, checkpoint.Station{Server: "a", Claims: claims})
	a.Claim(checkpoint.Claims{})
	b.learns(t)
	b.Close()
	c.learns(t)
}

// A server that says nothing any more has no workers.
func forgetsTheSilent(t *testing.T, url string, servers []*redistest.Server) {
	t.Helper()
	all := checkpoint.Served{Graph: "g"}
	const beat = time.Second
	a, b := enlist(t, url, "a", beat), enlist(t, url, "b", beat)
	a.Serve([]checkpoint.Served{all})
	b.learns(t, station("a", all))
	// What a server said that was killed a moment ago, and what one said before the clock was set back.
	said(t, servers, func(now time.Time) map[string]string {
		return map[string]string{
			"killed": micros(now.Add(beat*100)) + ` [{"graph":"g"}]`,
			"ahead":  micros(now.Add(100*time.Hour)) + ` [{"graph":"g"}]`,
			"newer":  micros(now.Add(beat*100)) + ` {"what":"nobody knows"}`,
			"broken": "nonsense",
		}
	})
	b.learns(t, station("a", all), station("killed", all), station("newer"))
	said(t, servers, func(now time.Time) map[string]string {
		return map[string]string{"killed": micros(now) + ` [{"graph":"g"}]`}
	})
	b.learns(t, station("a", all), station("newer"))
	stored := map[string]string{}
	for _, s := range servers {
		if found, err := s.Client.HGetAll(t.Context(), "graphd{meta}:roster").Result(); err == nil && len(found) > 0 {
			stored = found
		}
	}
	require.Len(t, stored, 2, "what has ended is forgotten: %v", stored)
}

// said writes what other servers said, behind the back of the store.
func said(t *testing.T, servers []*redistest.Server, what func(now time.Time) map[string]string) {
	t.Helper()
	for _, s := range servers {
		now, err := s.Client.Time(t.Context()).Result()
		require.NoError(t, err)
		err = s.Client.HSet(t.Context(), "graphd{meta}:roster", what(now)).Err()
		if err == nil {
			return
		}
		require.True(t, strings.HasPrefix(err.Error(), "MOVED"), err)
	}
	require.Fail(t, "no server has the roster")
}

func micros(at time.Time) string { return strconv.FormatInt(at.UnixMicro(), 10) }

// The roster is written every beat and when something changes, never more.
func TestRosterIsCheap(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	a := enlist(t, server.URL(""), "a", time.Hour)
	b := enlist(t, server.URL(""), "b", time.Hour)
	a.Serve([]checkpoint.Served{{Graph: "g0"}})
	b.learns(t, station("a", checkpoint.Served{Graph: "g0"}))
	require.NoError(t, server.Client.ConfigResetStat(t.Context()).Err())
	for i := range 1000 { // a worker comes and goes
		a.Serve([]checkpoint.Served{{Graph: "g" + strconv.Itoa(i%2)}})
	}
	b.learns(t, station("a", checkpoint.Served{Graph: "g1"}))
	calls, _, _ := strings.Cut(strings.TrimPrefix(stats(t, server)["cmdstat_evalsha"], "calls="), ",")
	n, err := strconv.Atoi(calls)
	require.NoError(t, err)
	require.Less(t, n, 10)
}
