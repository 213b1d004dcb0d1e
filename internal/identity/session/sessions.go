// Package session keeps who has signed in in a browser, in the cookie of that browser alone:
// sealed, so that only the server reads or makes one, and with the claims of the issuer from
// which a principal is made anew for each call.
package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/graphd-dev/graphd/internal/identity"
)

// MaxCookieBytes bounds a sealed session: a browser keeps 4,096 bytes of a cookie with its
// name.
const MaxCookieBytes = 3800

// MaxAge bounds how long a session may last.
const MaxAge = 12 * time.Hour

// Sealer seals texts. A text that was sealed for a purpose opens for that purpose alone.
type Sealer interface {
	Seal(purpose, text string) (sealed string)
	Open(purpose, sealed string) (text string, ok bool)
}

// Claims makes principals of the claims of an issuer. The error is an *identity.Error.
type Claims interface {
	ReadClaims(issuer, claims string) (identity.Principal, error)
}

// Options make Sessions. All fields must be set.
type Options struct {
	Sealer Sealer
	Claims Claims
	Now    func() time.Time
	// Age is how long a session lasts, at most MaxAge.
	Age time.Duration
}

// Sessions begins, knows and ends sessions. Its methods may be called at the same time.
type Sessions struct {
	opts  Options
	ended *endedSessions
}

// New makes Sessions.
func New(o Options) *Sessions {
	return &Sessions{opts: o, ended: newEndedSessions()}
}

const purpose = "session"

// TooLargeError says that the claims of a person do not fit into a cookie.
type TooLargeError struct {
	Bytes int
	Most  int
}

// Error has both numbers.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the claims of the person make a session of %d bytes: want at most %d", e.Bytes, e.Most)
}

// Begin begins the session of a person who has signed in, and returns it sealed, with its
// end. The error is a *TooLargeError.
func (s *Sessions) Begin(who *identity.SignIn) (sealed string, until time.Time, err error) {
	now := s.opts.Now()
	until = now.Add(min(s.opts.Age, MaxAge)).Truncate(time.Second)
	text := encodeRecord(&record{
		Issuer: who.Issuer, ID: newID(who), Begun: now.UnixMicro(), Until: until.Unix(), Claims: []byte(who.Claims),
	})
	sealed = s.opts.Sealer.Seal(purpose, text)
	if len(sealed) > MaxCookieBytes {
		return "", time.Time{}, &TooLargeError{len(sealed), MaxCookieBytes}
	}
	return sealed, until, nil
}

// newID returns the id of a session. All sessions of one session with the issuer have the
// same, so that they end together.
func newID(who *identity.SignIn) string {
	if who.Session == "" {
		return rand.Text()
	}
	sum := sha256.Sum256([]byte(who.Issuer + "\x00" + who.Session))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// Find returns who has a sealed session, and when it ends. The error is an *identity.Error.
func (s *Sessions) Find(sealed string) (identity.Principal, time.Time, error) {
	r, err := s.open(sealed)
	if err == nil {
		err = s.checkEnd(r)
	}
	if err != nil {
		return identity.Principal{}, time.Time{}, err
	}
	p, err := s.opts.Claims.ReadClaims(r.Issuer, string(r.Claims))
	if err != nil {
		return identity.Principal{}, time.Time{}, err
	}
	p.How, p.Lifetime = identity.HowSession, lifetime{s, r}
	return p, r.end(), nil
}

// Authenticate returns who has the session of a call. The error is an *identity.Error.
func (s *Sessions) Authenticate(_ context.Context, given identity.Credentials) (identity.Principal, error) {
	if given.Relayed == nil || len(given.Relayed.Sessions) != 1 { // another site below the same domain may have added one
		return identity.Principal{}, &identity.Error{Reason: identity.SessionInvalid}
	}
	p, _, err := s.Find(given.Relayed.Sessions[0])
	return p, err
}

// End ends a sealed session at this server, and those that belong to the same session with
// the issuer. Their streams end. A text that is no session has no effect.
func (s *Sessions) End(sealed string) {
	r, err := s.open(sealed)
	if err != nil || s.checkEnd(r) != nil {
		return
	}
	s.ended.add(r.ID, s.opts.Now())
}

// open opens a sealed session. The error is an *identity.Error.
func (s *Sessions) open(sealed string) (*record, error) {
	if len(sealed) > MaxCookieBytes {
		return nil, &identity.Error{Reason: identity.SessionInvalid}
	}
	text, ok := s.opts.Sealer.Open(purpose, sealed)
	if !ok {
		return nil, &identity.Error{Reason: identity.SessionInvalid}
	}
	r, ok := decodeRecord(text)
	if !ok {
		return nil, &identity.Error{Reason: identity.SessionInvalid}
	}
	return r, nil
}

// checkEnd refuses a session that has ended.
func (s *Sessions) checkEnd(r *record) error {
	if !s.opts.Now().Before(r.end()) || s.ended.has(r.ID, r.begin()) {
		return &identity.Error{Reason: identity.SessionExpired}
	}
	return nil
}

// lifetime is that of one session.
type lifetime struct {
	sessions *Sessions
	record   *record
}

// WaitForEnd waits until the session ends by its time or because the person signs out.
func (l lifetime) WaitForEnd(ctx context.Context) error {
	for {
		changed := l.sessions.ended.changes()
		if err := l.sessions.checkEnd(l.record); err != nil {
			return err
		}
		timer := time.NewTimer(l.record.end().Sub(l.sessions.opts.Now()))
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		timer.Stop()
	}
}
