package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/lease"
)

func newTask(fence uint64, attempt int) *runtime.Task {
	return &runtime.Task{ID: "a1", Thread: "t", Fence: fence, Attempt: attempt}
}

func sign(s *lease.Signer, t *runtime.Task) lease.Lease { return s.SignLease(t, lease.KeyOf(t), "") }

func TestATokenSaysWhatWasSigned(t *testing.T) {
	signer := lease.NewSigner([]byte("key"))
	task := newTask(3, 2)
	given := sign(signer, task)

	read, ok := lease.NewSigner([]byte("key")).ParseToken(given.Token)
	require.True(t, ok)
	require.Equal(t, given, read)
	require.Equal(t, "a1", read.TaskID())
	require.Equal(t, lease.PlaceOf(task), read.Place())
	require.True(t, signer.IsOwn(read))
	require.False(t, lease.NewSigner([]byte("key")).IsOwn(read))
	require.True(t, read.IsFor(task, lease.KeyOf(task)))
	require.False(t, read.IsFor(newTask(3, 3), lease.KeyOf(task)), "a later attempt")
}

func TestForgedTokensAreRefused(t *testing.T) {
	given := sign(lease.NewSigner([]byte("key")), newTask(1, 1)).Token
	signer := lease.NewSigner([]byte("another key"))
	for _, token := range []string{"", "x", given, given[:len(given)-1], "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		_, ok := signer.ParseToken(token)
		require.False(t, ok, "%q", token)
	}
	own := sign(signer, newTask(1, 1)).Token
	all, forged := signer.ParseTokens([]string{own, given, own, given}, lease.Holder{})
	require.Len(t, all, 1)
	require.Equal(t, []string{given}, forged)
}

func TestTheLaterLeaseIsNewer(t *testing.T) {
	signer, other := lease.NewSigner([]byte("key")), lease.NewSigner([]byte("key"))
	first := sign(signer, newTask(1, 1))
	second := sign(signer, newTask(1, 1))
	require.True(t, second.IsNewer(first))
	require.False(t, first.IsNewer(second))
	require.False(t, sign(other, newTask(1, 1)).IsNewer(first), "numbers of two servers don't compare")
	require.True(t, sign(other, newTask(1, 2)).IsNewer(second))
	require.True(t, sign(other, newTask(2, 0)).IsNewer(sign(signer, newTask(1, 5))))
}

type session struct{ name string }

func newReclaims(history *lease.History, changes *int) *lease.Reclaims[session] {
	startTimer := func(*lease.Reclaimed[session]) *time.Timer { return time.NewTimer(time.Hour) }
	return lease.NewReclaims(history, startTimer, func() { *changes++ })
}

func TestOfTwoLeasesOfAPlaceTheNewerIsKept(t *testing.T) {
	signer, history, changes := lease.NewSigner([]byte("key")), lease.NewHistory(), 0
	reclaims := newReclaims(history, &changes)
	a, b := &session{"a"}, &session{"b"}
	older, newer := sign(signer, newTask(1, 1)), sign(signer, newTask(1, 1))
	reclaims.Add(a, older)
	known := reclaims.FindPlace(older.Place())

	require.True(t, reclaims.Claim(known, b, newer, time.Hour))
	require.True(t, history.IsRejected(older.Token))
	require.Equal(t, []int{0, 1}, []int{reclaims.CountOf(a), reclaims.CountOf(b)})
	select {
	case <-known.Decided():
	default:
		require.Fail(t, "the calls that wait for the older lease go on")
	}
	require.False(t, reclaims.Claim(reclaims.FindPlace(newer.Place()), a, older, time.Hour))
}

func TestWhatExpiresDependsOnWhereTheWorkerIs(t *testing.T) {
	for name, c := range map[string]struct {
		hasSession, hasCall, isAwaited bool
		kept, rejected, unclaimed      bool
	}{
		"no worker":                {},
		"a stream":                 {hasSession: true, rejected: true},
		"a stream, and is awaited": {hasSession: true, isAwaited: true, kept: true},
		"a call":                   {hasCall: true, unclaimed: true},
		"a call, and is awaited":   {hasCall: true, isAwaited: true, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			history, changes := lease.NewHistory(), 0
			reclaims := newReclaims(history, &changes)
			l := sign(lease.NewSigner([]byte("key")), newTask(1, 1))
			var s *session
			if c.hasSession {
				s = &session{}
			}
			reclaims.Add(s, l)
			held := reclaims.FindPlace(l.Place())
			if c.hasCall {
				reclaims.AddWaitingCalls(held, +1)
			}
			reclaims.Expire(held, func(string) bool { return c.isAwaited }, time.Hour)
			require.Equal(t, c.kept, reclaims.FindPlace(l.Place()) != nil)
			require.Equal(t, c.rejected, history.IsRejected(l.Token))
			require.Equal(t, c.unclaimed, held.IsUnclaimed())
		})
	}
}

// A lease is of the worker of one principal.
func TestLeasesAreOfPrincipals(t *testing.T) {
	signer := lease.NewSigner([]byte("key"))
	task := &runtime.Task{ID: "t"}
	for _, owner := range []string{"", "ana", "a-b/c"} {
		made := signer.SignLease(task, lease.KeyOf(task), owner)
		read, ok := signer.ParseToken(made.Token)
		require.True(t, ok)
		require.Equal(t, made, read)
		require.True(t, signer.IsOwn(read))
		require.True(t, read.IsOf(lease.Holder{Principal: owner}))
		require.Equal(t, owner == "", read.IsOf(lease.Holder{Principal: "ben"}))
		require.Equal(t, owner == "", read.IsOf(lease.Holder{Principal: "ana2"}))
		_, forged := signer.ParseTokens([]string{made.Token}, lease.Holder{Principal: "ben"})
		require.Equal(t, owner != "", len(forged) == 1)
		require.NotContains(t, made.Token, "ana")
	}
}

// A lease belongs to the tenant of its task, also that of an endpoint, whose holder is not
// known. No name of a principal looks like one in a tenant.
func TestLeasesAreOfTenants(t *testing.T) {
	signer := lease.NewSigner([]byte("key"))
	holders := []lease.Holder{
		{},
		{Principal: "ana"},
		{Principal: "acme@ana"},
		{Principal: "acme"},
		{Tenant: "acme"},
		{Tenant: "acme", Principal: "ana"},
		{Tenant: "acme@ana"},
		{Tenant: "zenith"},
		{Tenant: "zenith", Principal: "ana"},
	}
	for _, c := range []struct {
		thread, principal string
		want              []lease.Holder
	}{
		{"t", "", []lease.Holder{{}, {Principal: "ana"}, {Principal: "acme@ana"}, {Principal: "acme"}}},
		{"t", "ana", []lease.Holder{{Principal: "ana"}}},
		{"acme@t", "", []lease.Holder{{Tenant: "acme"}, {Tenant: "acme", Principal: "ana"}}},
		{"acme@t", "ana", []lease.Holder{{Tenant: "acme", Principal: "ana"}}},
	} {
		task := &runtime.Task{ID: "t", Thread: c.thread}
		made := signer.SignLease(task, lease.KeyOf(task), c.principal)
		read, ok := signer.ParseToken(made.Token)
		require.True(t, ok)
		var may []lease.Holder
		for _, h := range holders {
			if read.IsOf(h) {
				may = append(may, h)
			}
		}
		require.Equal(t, c.want, may, "%+v", c)
		require.Equal(t, c.thread == "t", read.IsOf(lease.Holder{Tenant: "default", Principal: c.principal}))
		require.NotContains(t, made.Token, "acme")
	}
}
