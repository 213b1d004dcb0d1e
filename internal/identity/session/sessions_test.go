package session_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/session"
)

// claims names the principal by the claim sub.
type claims struct{ isGone bool }

func (c *claims) ReadClaims(issuer, text string) (identity.Principal, error) {
	if c.isGone {
		return identity.Principal{}, &identity.Error{Reason: identity.SessionInvalid}
	}
	return identity.Principal{Name: issuer + " " + text, How: identity.HowJWT}, nil
}

func newBox(t testing.TB, ids ...string) *seal.TextBox {
	t.Helper()
	var keys []seal.Key
	for _, id := range ids {
		keys = append(keys, seal.Key{ID: id, Secret: []byte(strings.Repeat(id, seal.KeySize))})
	}
	box, err := seal.NewTextBox(keys)
	require.NoError(t, err)
	return box
}

func newSessions(t testing.TB, known *claims, ids ...string) *session.Sessions {
	t.Helper()
	return session.New(session.Options{Sealer: newBox(t, ids...), Claims: known, Now: time.Now, Age: time.Hour})
}

func ana(sid string) *identity.SignIn {
	return &identity.SignIn{Issuer: "https://a.example", Session: sid, Claims: `{"sub":"<ana>"}`}
}

// find returns who has a session, or the reason of the refusal.
func find(s *session.Sessions, sealed string) string {
	p, err := s.Authenticate(context.Background(), identity.Credentials{Relayed: &identity.Relayed{Sessions: []string{sealed}}})
	if refused, ok := errors.AsType[*identity.Error](err); ok {
		return string(refused.Reason)
	}
	return p.Name + ", " + string(p.How)
}

// pass lets time pass in a bubble.
func pass(d time.Duration) { <-time.NewTimer(d).C }

const isAna = `https://a.example {"sub":"<ana>"}, session`

func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := &claims{}
		s := newSessions(t, known, "b", "a")
		sealed, until, err := s.Begin(ana(""))
		require.NoError(t, err)
		require.Equal(t, time.Now().Add(time.Hour), until)
		require.Equal(t, isAna, find(s, sealed))
		again, _, err := s.Begin(ana(""))
		require.NoError(t, err)
		require.NotEqual(t, sealed, again)

		require.Equal(t, isAna, find(newSessions(t, known, "b"), sealed), "of another replica")
		require.Equal(t, isAna, find(newSessions(t, known, "c", "b"), sealed), "after a change of the keys")
		require.Equal(t, "SESSION_INVALID", find(newSessions(t, known, "a"), sealed), "of another key")
		require.Equal(t, "SESSION_INVALID", find(s, newBox(t, "b").Seal("sign-in", `{"i":"i","s":"s","b":1,"u":9999999999,"c":{}}`)), "for another purpose")
		require.Equal(t, "SESSION_INVALID", find(s, ""))
		_, err = s.Authenticate(t.Context(), identity.Credentials{Relayed: &identity.Relayed{Sessions: []string{sealed, again}}})
		require.Equal(t, &identity.Error{Reason: identity.SessionInvalid}, err, "two cookies")
		known.isGone = true
		require.Equal(t, "SESSION_INVALID", find(s, sealed), "the issuer is no longer trusted")
		known.isGone = false

		pass(time.Hour - 1)
		require.Equal(t, isAna, find(s, sealed))
		pass(1)
		require.Equal(t, "SESSION_EXPIRED", find(s, sealed))
		s.End(sealed)
	})
}

func TestSessionsOfOneSignInEndTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(t, &claims{}, "a")
		begin := func(sid string) string {
			sealed, _, err := s.Begin(ana(sid))
			require.NoError(t, err)
			return sealed
		}
		first, second, other, without := begin("s1"), begin("s1"), begin("s2"), begin("")
		s.End(first)
		require.Equal(t, "SESSION_EXPIRED", find(s, first))
		require.Equal(t, "SESSION_EXPIRED", find(s, second))
		require.Equal(t, isAna, find(s, other))
		require.Equal(t, isAna, find(s, without))
		pass(time.Millisecond)
		require.Equal(t, isAna, find(s, begin("s1")), "a new sign-in")
		require.Equal(t, "SESSION_EXPIRED", find(s, first))
	})
}

func TestLifetimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(t, &claims{}, "a")
		wait := func(ctx context.Context) (sealed string, ended chan error) {
			sealed, _, err := s.Begin(ana(""))
			require.NoError(t, err)
			p, _, err := s.Find(sealed)
			require.NoError(t, err)
			ended = make(chan error, 1)
			go func() { ended <- p.Lifetime.WaitForEnd(ctx) }()
			synctest.Wait()
			require.Empty(t, ended)
			return sealed, ended
		}
		expired := &identity.Error{Reason: identity.SessionExpired}
		first, ended := wait(t.Context())
		_, other := wait(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		_, left := wait(ctx)
		s.End(first)
		require.Equal(t, expired, <-ended)
		synctest.Wait()
		require.Empty(t, other)
		cancel()
		require.ErrorIs(t, <-left, context.Canceled)
		began := time.Now()
		require.Equal(t, expired, <-other)
		require.Equal(t, time.Hour, time.Since(began))
	})
}

func TestSessionsFitIntoACookie(t *testing.T) {
	s := newSessions(t, &claims{}, "a")
	who := ana("s")
	who.Claims = fmt.Sprintf(`{"groups":%q}`, strings.Repeat("g", 100_000))
	sealed, _, err := s.Begin(who)
	require.NoError(t, err, "it is compressed")
	require.Less(t, len(sealed), 1000)
	who.Claims = `{"groups":"` + strings.Join(randomTexts(200), " ") + `"}`
	_, _, err = s.Begin(who)
	large, ok := errors.AsType[*session.TooLargeError](err)
	require.True(t, ok)
	require.Equal(t, session.MaxCookieBytes, large.Most)
	require.ErrorContains(t, err, "want at most 3800")
}

func randomTexts(n int) (all []string) {
	for range n {
		all = append(all, rand.Text())
	}
	return all
}

// FuzzOpen opens texts of any bytes: none is a session, and none ends one.
func FuzzOpen(f *testing.F) {
	box := newBox(f, "a")
	s := session.New(session.Options{Sealer: box, Claims: &claims{}, Now: time.Now, Age: time.Hour})
	good, _, err := s.Begin(ana("s"))
	require.NoError(f, err)
	f.Add(good[:len(good)-1], "")
	f.Add("AgFh", `{"i":"i","s":"s","b":1,"u":9999999999,"c":{}}`)
	f.Add("eyJpIjoiaSJ9", `{"i":"i","s":"s","b":1,"u":9999999999,"c":{}}{}`)
	f.Fuzz(func(t *testing.T, sealed, text string) {
		if sealed != good {
			require.Equal(t, "SESSION_INVALID", find(s, sealed))
			s.End(sealed)
			require.Equal(t, isAna, find(s, good))
		}
		_ = find(s, box.Seal("session", text)) // a text that a key has sealed is read strictly all the same
	})
}
