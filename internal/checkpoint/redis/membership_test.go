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

// testMember is a registered server.
type testMember struct {
	checkpoint.Registration

	store   *redis.Store
	changed chan struct{}
}

func registerMember(t *testing.T, url, server string, beat time.Duration) *testMember {
	t.Helper()
	s, err := redis.Open(t.Context(), redis.Options{URL: url, Heartbeat: beat})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	w := &testMember{store: s, changed: make(chan struct{}, 1)}
	w.Registration = s.Register(server, func() {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	})
	t.Cleanup(w.Close)
	return w
}

// waitForMembers waits until a server knows what the others take.
func (tm *testMember) waitForMembers(t *testing.T, want ...checkpoint.Member) {
	t.Helper()
	if len(want) == 0 {
		want = []checkpoint.Member{}
	}
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for {
		others := tm.OtherMembers()
		if len(others) == len(want) && (len(want) == 0 || equalMembers(want, others)) {
			return
		}
		select {
		case <-tm.changed:
		case <-late.C:
			require.Equal(t, want, tm.OtherMembers())
			return
		}
	}
}

func equalMembers(a, b []checkpoint.Member) bool {
	for i := range a {
		if a[i].Server != b[i].Server || len(a[i].Capabilities) != len(b[i].Capabilities) ||
			!slices.Equal(a[i].Claims.Held, b[i].Claims.Held) || !slices.Equal(a[i].Claims.Awaited, b[i].Claims.Awaited) {
			return false
		}
		for j := range a[i].Capabilities {
			if a[i].Capabilities[j] != b[i].Capabilities[j] {
				return false
			}
		}
	}
	return true
}

func newMember(server string, serves ...checkpoint.Capability) checkpoint.Member {
	return checkpoint.Member{Server: server, Capabilities: serves}
}

func TestMembership(t *testing.T) {
	both := func(t *testing.T, servers []*redistest.Server) {
		t.Helper()
		t.Run("tells at once", func(t *testing.T) { testAnnouncesChanges(t, servers[0].URL("shared=true&prefix=told")) })
		t.Run("forgets the silent", func(t *testing.T) { testForgetsSilentServers(t, servers[0].URL("shared=true"), servers) })
	}
	t.Run("on one server", func(t *testing.T) {
		both(t, []*redistest.Server{redistest.Start(t, "--appendfsync", "no")})
	})
	t.Run("on a cluster", func(t *testing.T) { both(t, redistest.StartCluster(t, 2)) })
}

// Servers tell one another at once what their workers take.
func testAnnouncesChanges(t *testing.T, url string) {
	t.Helper()
	const rarely = time.Hour // no heartbeat: only announced changes arrive
	a, b := registerMember(t, url, "a", rarely), registerMember(t, url, "b", rarely)
	odd := checkpoint.Capability{Graph: `g " 9007199254740993 ü`, Version: "v 1", Node: "\n"}
	all := checkpoint.Capability{Graph: "g"}
	a.SetCapabilities([]checkpoint.Capability{odd, all})
	b.waitForMembers(t, newMember("a", odd, all))
	require.Empty(t, a.OtherMembers(), "a server does not see itself")
	b.SetCapabilities([]checkpoint.Capability{all})
	a.waitForMembers(t, newMember("b", all))
	c := registerMember(t, url, "c", rarely)
	c.waitForMembers(t, newMember("a", odd, all), newMember("b", all))
	a.SetCapabilities([]checkpoint.Capability{all})
	b.waitForMembers(t, newMember("a", all))
	c.waitForMembers(t, newMember("a", all), newMember("b", all))
	claims := checkpoint.Claims{Held: []string{"t1", `"ü`}, Awaited: []string{"t2"}}
	a.SetClaims(claims)
	b.waitForMembers(t, checkpoint.Member{Server: "a", Capabilities: []checkpoint.Capability{all}, Claims: claims})
	a.SetCapabilities(nil)
	b.waitForMembers(t, checkpoint.Member{Server: "a", Claims: claims})
	a.SetClaims(checkpoint.Claims{})
	b.waitForMembers(t)
	b.Close()
	c.waitForMembers(t)
}

// A server that says nothing any more has no workers.
func testForgetsSilentServers(t *testing.T, url string, servers []*redistest.Server) {
	t.Helper()
	all := checkpoint.Capability{Graph: "g"}
	const beat = time.Second
	a, b := registerMember(t, url, "a", beat), registerMember(t, url, "b", beat)
	a.SetCapabilities([]checkpoint.Capability{all})
	b.waitForMembers(t, newMember("a", all))
	// What a server said that was killed a moment ago, and what one said before the clock was set back.
	writeMembers(t, servers, func(now time.Time) map[string]string {
		return map[string]string{
			"killed": formatMicros(now.Add(beat*100)) + ` [{"graph":"g"}]`,
			"ahead":  formatMicros(now.Add(100*time.Hour)) + ` [{"graph":"g"}]`,
			"newer":  formatMicros(now.Add(beat*100)) + ` {"what":"nobody knows"}`,
			"broken": "nonsense",
		}
	})
	b.waitForMembers(t, newMember("a", all), newMember("killed", all), newMember("newer"))
	writeMembers(t, servers, func(now time.Time) map[string]string {
		return map[string]string{"killed": formatMicros(now) + ` [{"graph":"g"}]`}
	})
	b.waitForMembers(t, newMember("a", all), newMember("newer"))
	stored := map[string]string{}
	for _, s := range servers {
		if found, err := s.Client.HGetAll(t.Context(), "graphd{meta}:roster").Result(); err == nil && len(found) > 0 {
			stored = found
		}
	}
	require.Len(t, stored, 2, "what has ended is forgotten: %v", stored)
}

// writeMembers writes what other servers said, behind the back of the store.
func writeMembers(t *testing.T, servers []*redistest.Server, what func(now time.Time) map[string]string) {
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
	require.Fail(t, "no server is in the membership")
}

func formatMicros(at time.Time) string { return strconv.FormatInt(at.UnixMicro(), 10) }

// The membership is written with every heartbeat and when a capability changes,
// never more often.
func TestMembershipIsWrittenRarely(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	a := registerMember(t, server.URL(""), "a", time.Hour)
	b := registerMember(t, server.URL(""), "b", time.Hour)
	a.SetCapabilities([]checkpoint.Capability{{Graph: "g0"}})
	b.waitForMembers(t, newMember("a", checkpoint.Capability{Graph: "g0"}))
	require.NoError(t, server.Client.ConfigResetStat(t.Context()).Err())
	for i := range 1000 { // a worker comes and goes
		a.SetCapabilities([]checkpoint.Capability{{Graph: "g" + strconv.Itoa(i%2)}})
	}
	b.waitForMembers(t, newMember("a", checkpoint.Capability{Graph: "g1"}))
	calls, _, _ := strings.Cut(strings.TrimPrefix(readStats(t, server)["cmdstat_evalsha"], "calls="), ",")
	n, err := strconv.Atoi(calls)
	require.NoError(t, err)
	require.Less(t, n, 10)
}
