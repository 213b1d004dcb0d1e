package redis_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
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
	a.waitForMembers(t, newMember("b")) // a server does not see itself, and one without workers is a member
	b.SetCapabilities([]checkpoint.Capability{all})
	a.waitForMembers(t, newMember("b", all))
	c := registerMember(t, url, "c", rarely)
	c.waitForMembers(t, newMember("a", odd, all), newMember("b", all))
	a.SetCapabilities([]checkpoint.Capability{all})
	b.waitForMembers(t, newMember("a", all), newMember("c"))
	c.waitForMembers(t, newMember("a", all), newMember("b", all))
	claims := checkpoint.Claims{Held: []string{"t1", `"ü`}, Awaited: []string{"t2"}}
	a.SetClaims(claims)
	b.waitForMembers(t, checkpoint.Member{Server: "a", Capabilities: []checkpoint.Capability{all}, Claims: claims}, newMember("c"))
	a.SetCapabilities(nil)
	b.waitForMembers(t, checkpoint.Member{Server: "a", Claims: claims}, newMember("c"))
	a.SetClaims(checkpoint.Claims{})
	b.waitForMembers(t, newMember("a"), newMember("c"))
	b.Close()
	c.waitForMembers(t, newMember("a"))
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
	require.Len(t, stored, 3, "what has ended is forgotten: %v", stored)
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

// exchangeMembership makes an exchange with a script, as a server does that keeps no known entries.
func exchangeMembership(t testing.TB, server *redistest.Server, run *goredis.Script, keys []string, name, entry, known string) script.Reply {
	t.Helper()
	epoch, err := server.Client.HGet(t.Context(), "graphd{meta}:format", "epoch").Result()
	require.NoError(t, err)
	answer, err := run.Run(t.Context(), server.Client, keys, name, time.Minute.Microseconds(), entry, epoch, known).Slice()
	require.NoError(t, err)
	return answer
}

// loadMembership returns the script of the membership, and its keys.
func loadMembership(t testing.TB) (*goredis.Script, []string) {
	t.Helper()
	scripts, err := script.Load()
	require.NoError(t, err)
	keys := layout.NewKeys("graphd", 0)
	return scripts.Membership, keys.MembershipKeys()
}

// A heartbeat costs no more with more members, as long as none of them changes.
func TestAHeartbeatReadsWhatHasChanged(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	openStore(t, server.URL(""))
	run, keys := loadMembership(t)
	exchange := func(name, entry, known string) script.Reply {
		return exchangeMembership(t, server, run, keys, name, entry, known)
	}
	const many = 300
	for i := range many {
		exchange("server-"+strconv.Itoa(i), `[{"graph":"g"}]`, "")
	}
	all := exchange("a", "[]", "")
	require.Len(t, all, 3+2*many)
	require.Equal(t, int64(1), all[2], "all entries")
	known := all.TextAt(1)
	require.Equal(t, script.Reply{int64(0), known, int64(0)}, exchange("a", "[]", known), "nothing has changed")

	exchange("server-7", `[{"graph":"h"}]`, known)
	exchange("server-8", "-", known)
	exchange("server-9", `[{"graph":"g"}]`, known) // its heartbeat
	changed := exchange("a", "[]", known)
	require.Equal(t, script.Reply{"server-7", `[{"graph":"h"}]`, "server-8", nil}, changed[3:])
	require.Len(t, exchange("a", "[]", "999999"), 3+2*(many-1), "a number from before a loss: all entries")
	require.Equal(t, script.Reply{"server-7", `[{"graph":"h"}]`, "server-8", nil}, exchange("a", "[]", known)[3:])
}

// Changes of servers that are gone are forgotten, and a server that knows less reads all.
func TestTheMembershipForgetsServersThatAreGone(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	openStore(t, server.URL(""))
	run, keys := loadMembership(t)
	known := exchangeMembership(t, server, run, keys, "a", "[]", "").TextAt(1)
	exchangeMembership(t, server, run, keys, "stays", "[]", "")
	for i := range 1300 {
		name := "server-" + strconv.Itoa(i)
		exchangeMembership(t, server, run, keys, name, "[]", "")
		exchangeMembership(t, server, run, keys, name, "-", "")
	}
	n, err := server.Client.ZCard(t.Context(), keys[2]).Result()
	require.NoError(t, err)
	require.Less(t, n, int64(1100))
	require.Equal(t, script.Reply{"stays", "[]"}, exchangeMembership(t, server, run, keys, "a", "[]", known)[3:])
}

// TestMembersOfTheFormerBuild has a server of the build that knows the hash alone beside servers of
// this build: all see each other, and each change.
func TestMembersOfTheFormerBuild(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	source, err := os.ReadFile("testdata/membership_before_changes.lua")
	require.NoError(t, err)
	former := goredis.NewScript(string(source))
	run, keys := loadMembership(t)
	a := registerMember(t, server.URL(""), "a", 50*time.Millisecond)
	b := registerMember(t, server.URL(""), "b", 50*time.Millisecond)
	all := checkpoint.Capability{Graph: "g"}
	a.SetCapabilities([]checkpoint.Capability{all})
	b.waitForMembers(t, newMember("a", all))

	listed := func(entry string) map[string]string {
		found := map[string]string{}
		reply := exchangeMembership(t, server, former, keys[:2], "former", entry, "")[1:]
		for i := 0; i+1 < len(reply); i += 2 {
			found[reply.TextAt(i)] = reply.TextAt(i + 1)
		}
		return found
	}
	require.Equal(t, map[string]string{"a": `[{"graph":"g"}]`, "b": "[]"}, listed(`[{"graph":"h"}]`))
	formerMember := newMember("former", checkpoint.Capability{Graph: "h"})
	b.waitForMembers(t, newMember("a", all), formerMember)
	listed(`[{"graph":"i"}]`)
	b.waitForMembers(t, newMember("a", all), newMember("former", checkpoint.Capability{Graph: "i"}))
	a.Close()
	b.waitForMembers(t, newMember("former", checkpoint.Capability{Graph: "i"}))
	require.Equal(t, map[string]string{"b": "[]"}, listed("")) // it leaves
	b.waitForMembers(t)
	require.Len(t, exchangeMembership(t, server, run, keys, "b", "[]", exchangeMembership(t, server, run, keys, "b", "[]", "").TextAt(1)), 3,
		"only changes are read again")
}
