package quota_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/quota"
)

func alice(tenant string) quota.Caller { return quota.Caller{Tenant: tenant, Principal: "alice"} }
func bob(tenant string) quota.Caller   { return quota.Caller{Tenant: tenant, Principal: "bob"} }

func exceededBy(t *testing.T, err error) quota.ExceededError {
	t.Helper()
	refused, ok := errors.AsType[*quota.ExceededError](err)
	require.True(t, ok, "%v", err)
	return *refused
}

// countCalls returns how many calls in a row are admitted, at most 1000.
func countCalls(l *quota.Limiter, now time.Time, c quota.Caller, kind quota.Limit) int {
	for n := range 1000 {
		if l.TakeCall(now, c, kind) != nil {
			return n
		}
	}
	return 1000
}

func TestRates(t *testing.T) {
	const text = `
tenant: {calls: {per_second: 10, burst: 30}}
caller: {calls: {per_second: 5, burst: 20}, answers: {per_second: 2, burst: 3}}
`
	start := time.Unix(1e9, 0)
	type calls struct {
		after  time.Duration // since the start
		caller quota.Caller
		kind   quota.Limit
		admits int
	}
	for name, c := range map[string][]calls{
		"burst of a caller":         {{0, alice("a"), quota.Calls, 20}, {0, alice("a"), quota.Calls, 0}},
		"the tenant's burst":        {{0, alice("a"), quota.Calls, 20}, {0, bob("a"), quota.Calls, 10}},
		"tenants are apart":         {{0, alice("a"), quota.Calls, 20}, {0, bob("a"), quota.Calls, 10}, {0, alice("b"), quota.Calls, 20}},
		"tokens come back":          {{0, alice("a"), quota.Calls, 20}, {time.Second, alice("a"), quota.Calls, 5}},
		"not beyond the burst":      {{0, alice("a"), quota.Calls, 20}, {time.Hour, alice("a"), quota.Calls, 20}},
		"kinds have their own":      {{0, alice("a"), quota.Answers, 3}, {0, alice("a"), quota.Calls, 16}}, // the fourth answer took a call
		"kinds without a rate":      {{0, alice("a"), quota.Starts, 20}},
		"calls bound all kinds":     {{0, alice("a"), quota.Calls, 20}, {0, alice("a"), quota.Answers, 0}},
		"time that goes back":       {{time.Second, alice("a"), quota.Calls, 20}, {0, alice("a"), quota.Calls, 0}},
		"callers without principal": {{0, quota.Caller{Tenant: "a"}, quota.Calls, 20}},
	} {
		l := quota.New(parsePolicy(t, text))
		for i, step := range c {
			require.Equal(t, step.admits, countCalls(l, start.Add(step.after), step.caller, step.kind), "%s, step %d", name, i)
		}
	}
}

// A refusal tells when a call would be admitted, and it is admitted then.
func TestRefusedRatesTellTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quota.New(parsePolicy(t, "tenant: {calls: {per_second: 4, burst: 3}}\ncaller: {starts: {per_second: 0.1}}\n"))
		require.NoError(t, l.TakeCall(time.Now(), alice("acme"), quota.Starts))
		refused := exceededBy(t, l.TakeCall(time.Now(), alice("acme"), quota.Starts))
		require.Equal(t, quota.ExceededError{
			Limit: quota.Starts, IsCaller: true, Tenant: "acme", Rate: quota.Rate{PerSecond: 0.1, Burst: 1}, RetryAfter: 10 * time.Second,
		}, refused)
		require.Equal(t, "tenant:acme/caller/starts", refused.Subject())
		require.Equal(t, "the caller makes more than 0.1 calls that start runs per second, with 1 at once: call again in 10s", refused.Error())

		require.Equal(t, 2, countCalls(l, time.Now(), bob("acme"), quota.Calls), "a caller beyond its own rate took tokens of its tenant")
		refused = exceededBy(t, l.TakeCall(time.Now(), bob("acme"), quota.Calls))
		require.Equal(t, "tenant:acme/calls", refused.Subject())
		require.Equal(t, 250*time.Millisecond, refused.RetryAfter)
		require.NotContains(t, refused.Error(), "bob")
		require.NotContains(t, refused.Error(), "alice")

		require.NoError(t, backoff.Sleep(t.Context(), refused.RetryAfter))
		require.NoError(t, l.TakeCall(time.Now(), bob("acme"), quota.Calls))
		require.Error(t, l.TakeCall(time.Now(), bob("acme"), quota.Calls))
	})
}

// Who asks how long to wait takes nothing, of the limit that has none or of the others.
func TestWaitsTakeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := quota.New(parsePolicy(t, "tenant: {calls: {per_second: 1, burst: 3}}\ncaller: {answers: {per_second: 0.1}}\n"))
		require.Zero(t, l.FindWait(time.Now(), alice("acme"), quota.Answers))
		require.NoError(t, l.TakeCall(time.Now(), alice("acme"), quota.Answers))
		for range 10 {
			require.Equal(t, 10*time.Second, l.FindWait(time.Now(), alice("acme"), quota.Answers))
		}
		require.Zero(t, l.FindWait(time.Now(), alice("acme"), quota.Calls))
		require.Equal(t, 2, countCalls(l, time.Now(), bob("acme"), quota.Calls), "tokens of the tenant are gone")
		require.Equal(t, time.Second, l.FindWait(time.Now(), alice("acme"), quota.Calls))
		require.NoError(t, backoff.Sleep(t.Context(), 10*time.Second))
		require.Zero(t, l.FindWait(time.Now(), alice("acme"), quota.Answers))
		require.NoError(t, l.TakeCall(time.Now(), alice("acme"), quota.Answers))
	})
}

func TestCounts(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := quota.New(parsePolicy(t, "tenant: {streams: 3}\ncaller: {streams: 2}\n"))
	var holds []quota.Hold
	acquire := func(c quota.Caller) error {
		h, err := l.Acquire(now, c, quota.Streams)
		if err == nil {
			holds = append(holds, h)
		}
		return err
	}
	require.NoError(t, acquire(alice("a")))
	require.NoError(t, acquire(alice("a")))
	refused := exceededBy(t, acquire(alice("a")))
	require.Equal(t, quota.ExceededError{Limit: quota.Streams, IsCaller: true, Tenant: "a", Most: 2}, refused)
	require.Equal(t, "the caller has 2 streams at a time already, its limit", refused.Error())
	require.NoError(t, acquire(bob("a")))
	refused = exceededBy(t, acquire(bob("a")))
	require.Equal(t, quota.ExceededError{Limit: quota.Streams, Tenant: "a", Most: 3}, refused)
	require.Equal(t, `the tenant "a" has 3 streams at a time already, its limit`, refused.Error())
	require.EqualValues(t, 1, l.CountHeld(bob("a"), quota.Streams), "a refused stream counts for its caller")
	require.EqualValues(t, 3, l.CountHeld(quota.Caller{Tenant: "a"}, quota.Streams))
	require.Zero(t, l.CountHeld(alice("b"), quota.Streams))

	require.NoError(t, acquire(alice("b")))
	_, err := l.Acquire(now, alice("a"), quota.Workers)
	require.NoError(t, err, "another limit")
	for _, h := range holds {
		h.Release()
	}
	quota.Hold{}.Release()
	require.Zero(t, l.CountHeld(quota.Caller{Tenant: "a"}, quota.Streams))
	require.NoError(t, acquire(bob("a")))
}

func TestNewLimitsKeepWhatIsConsumed(t *testing.T) {
	now := time.Unix(1e9, 0)
	for name, c := range map[string]struct {
		before, after string
		calls         int // that are admitted at once after 15
		streams       int // that are admitted after 5
	}{
		"the same": {"{calls: {per_second: 1, burst: 20}, streams: 8}", "{calls: {per_second: 1, burst: 20}, streams: 8}", 5, 3},
		"lower":    {"{calls: {per_second: 1, burst: 20}, streams: 8}", "{calls: {per_second: 1, burst: 2}, streams: 2}", 2, 0},
		"higher":   {"{calls: {per_second: 1, burst: 20}, streams: 8}", "{calls: {per_second: 9, burst: 90}, streams: 9}", 5, 4},
		"taken away": {
			"{calls: {per_second: 1, burst: 20}, streams: 8}", "{calls: {per_second: -1}, streams: -1}", 1000, 100,
		},
		"given": {"{}", "{calls: {per_second: 1, burst: 7}, streams: 9}", 7, 4},
	} {
		l := quota.New(parsePolicy(t, "caller: "+c.before+"\n"))
		for range 15 {
			require.NoError(t, l.TakeCall(now, alice("a"), quota.Calls), name)
		}
		var holds []quota.Hold
		for range 5 {
			h, err := l.Acquire(now, alice("a"), quota.Streams)
			require.NoError(t, err, name)
			holds = append(holds, h)
		}
		changed := parsePolicy(t, "caller: "+c.after+"\n")
		l.SetPolicy(changed)
		require.Same(t, changed, l.Policy())
		require.Equal(t, c.calls, countCalls(l, now, alice("a"), quota.Calls), name)
		admitted := 0
		for range 100 {
			if _, err := l.Acquire(now, alice("a"), quota.Streams); err == nil {
				admitted++
			}
		}
		require.Equal(t, c.streams, admitted, name)
		for _, h := range holds {
			h.Release()
		}
		require.EqualValues(t, admitted, l.CountHeld(alice("a"), quota.Streams), name)
	}
}

// The limits of a caller follow its groups, which a new token may change.
func TestLimitsFollowTheGroups(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := quota.New(parsePolicy(t, "caller: {streams: 0}\noverrides:\n- groups: [staff]\n  caller: {streams: 1}\n"))
	c := alice("a")
	_, err := l.Acquire(now, c, quota.Streams)
	require.Error(t, err)
	c.Groups = []string{"staff"}
	h, err := l.Acquire(now, c, quota.Streams)
	require.NoError(t, err)
	h.Release()
	c.Groups = []string{"sta", "ff"}
	_, err = l.Acquire(now, c, quota.Streams)
	require.Error(t, err)
}

func TestAbsentCallersAreForgotten(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := quota.New(parsePolicy(t, "caller: {calls: {per_second: 1, burst: 10}}\n"))
	for range 10 {
		require.NoError(t, l.TakeCall(now, alice("a"), quota.Calls))
	}
	held, err := l.Acquire(now, bob("b"), quota.Streams)
	require.NoError(t, err)
	require.Equal(t, 4, l.CountAccounts())

	l.DropAbsent(now.Add(5 * time.Second))
	require.Equal(t, 3, l.CountAccounts(), "the tenant a has no limits, and nothing to remember")
	require.Equal(t, 5, countCalls(l, now.Add(5*time.Second), alice("a"), quota.Calls))
	l.DropAbsent(now.Add(time.Minute))
	require.Equal(t, 2, l.CountAccounts())
	require.EqualValues(t, 1, l.CountHeld(bob("b"), quota.Streams))
	held.Release()
	l.DropAbsent(now.Add(time.Minute))
	require.Zero(t, l.CountAccounts())
}

// More callers than the memory is for neither make it grow, nor free their tenant or
// what others hold.
func TestManyCallersDoNotGrowTheMemory(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := quota.New(parsePolicy(t, "tenant: {calls: {per_second: 1, burst: 100}}\ncaller: {calls: {per_second: 1, burst: 1}, streams: 1}\n"))
	_, err := l.Acquire(now, bob("b"), quota.Streams)
	require.NoError(t, err)
	admitted := 0
	for i := range 2 * quota.MaxAccounts {
		if l.TakeCall(now, quota.Caller{Tenant: "a", Principal: fmt.Sprint(i)}, quota.Calls) == nil {
			admitted++
		}
		now = now.Add(time.Nanosecond)
	}
	require.Equal(t, 100, admitted)
	require.LessOrEqual(t, l.CountAccounts(), quota.MaxAccounts)
	_, err = l.Acquire(now, bob("b"), quota.Streams)
	require.Error(t, err)
}

// Callers that hold something are remembered, whatever their number.
func TestManyHoldersAreCounted(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := quota.New(parsePolicy(t, "tenant: {streams: 40000}\ncaller: {streams: 1}\n"))
	var holds []quota.Hold
	for i := range 2 * quota.MaxAccounts {
		h, err := l.Acquire(now, quota.Caller{Tenant: "a", Principal: fmt.Sprint(i)}, quota.Streams)
		require.NoError(t, err)
		holds = append(holds, h)
	}
	_, err := l.Acquire(now, quota.Caller{Tenant: "a", Principal: "0"}, quota.Streams)
	require.Error(t, err)
	for _, h := range holds {
		h.Release()
	}
	l.DropAbsent(now)
	require.Zero(t, l.CountAccounts())
}

// Many goroutines hold, call and change the limits, and the counts stay right.
func TestCountsHoldTogether(t *testing.T) {
	now := time.Unix(1e9, 0)
	policies := []*quota.Policy{
		parsePolicy(t, "tenant: {streams: 5}\ncaller: {calls: {per_second: 1}}\n"),
		parsePolicy(t, "tenant: {streams: 5}\ncaller: {calls: {per_second: 2}, streams: 4}\n"),
	}
	l := quota.New(policies[0])
	var open, most int
	var mu sync.Mutex
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 500 {
				c := quota.Caller{Tenant: "a", Principal: fmt.Sprint(worker % 3)}
				_ = l.TakeCall(now, c, quota.Starts)
				if i%50 == worker {
					l.SetPolicy(policies[i/50%2])
					l.DropAbsent(now.Add(time.Hour))
				}
				h, err := l.Acquire(now, c, quota.Streams)
				if err != nil {
					continue
				}
				mu.Lock()
				open++
				most = max(most, open)
				mu.Unlock()
				mu.Lock()
				open--
				mu.Unlock()
				h.Release()
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, most, 5)
	require.Positive(t, most)
	require.Zero(t, l.CountHeld(quota.Caller{Tenant: "a"}, quota.Streams))
}

func TestOneDecisionAllocatesNothing(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := quota.New(parsePolicy(t, manyRules))
	c := quota.Caller{Tenant: "acme", Principal: "alice", Groups: []string{"staff", "robots"}}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		now = now.Add(time.Second)
		if err := l.TakeCall(now, c, quota.Answers); err != nil {
			t.Error(err)
		}
		h, err := l.Acquire(now, c, quota.Streams)
		if err != nil {
			t.Error(err)
		}
		h.Release()
	}))
}

func BenchmarkTakeCall(b *testing.B) {
	const generous = "tenant: {calls: {per_second: 1e9}}\ncaller: {calls: {per_second: 1e9}}\n"
	for _, c := range []struct{ name, text string }{
		{"admitted", generous},
		{"refused", "tenant: {calls: {per_second: 1}}\ncaller: {calls: {per_second: 1}}\n"},
		{"groups", generous + "overrides: [{groups: [x], caller: {streams: 1}}]\n"},
		{"overrides", generous + "overrides:\n" + strings.Repeat("- {groups: [x], caller: {streams: 1}}\n", quota.MaxOverrides)},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := quota.New(parsePolicy(b, c.text))
			of := quota.Caller{Tenant: "acme", Principal: "alice", Groups: []string{"staff", "robots"}}
			b.ReportAllocs()
			for b.Loop() {
				_ = l.TakeCall(time.Now(), of, quota.Calls)
			}
		})
	}
	b.Run("strangers", func(b *testing.B) {
		l := quota.New(parsePolicy(b, generous))
		names := make([]string, 4*quota.MaxAccounts)
		for i := range names {
			names[i] = fmt.Sprint(i)
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_ = l.TakeCall(time.Now(), quota.Caller{Tenant: "acme", Principal: names[i%len(names)]}, quota.Calls)
		}
	})
}
