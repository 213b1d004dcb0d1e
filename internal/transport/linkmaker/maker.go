// Package linkmaker makes links by which one person answers one question.
package linkmaker

import (
	"errors"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/link"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// DefaultValid is how long a link is valid when its request does not say.
const DefaultValid = 72 * time.Hour

// Maker makes links.
type Maker struct {
	Keys link.Keys
	// BaseURL precedes the path of each link, without a slash at its end.
	BaseURL string
	// MaxValid bounds how long a link is valid.
	MaxValid time.Duration
	Now      func() time.Time
}

// MakeLink makes a link. The error is a *runtime.Error, INVALID_FIELD.
func (m *Maker) MakeLink(req wire.LinkRequest) (wire.Link, error) {
	valid := req.Valid
	switch {
	case valid == 0:
		valid = min(DefaultValid, m.MaxValid)
	case valid < time.Second || valid > m.MaxValid:
		return wire.Link{}, runtime.Errorf(runtime.ReasonInvalidField, "valid: is %v, want 1s to %v", valid, m.MaxValid).
			With("field", "valid").WithViolation("valid", "must be 1s to %v", m.MaxValid)
	}
	if err := checkPerson(&req); err != nil {
		return wire.Link{}, err
	}
	ends := m.Now().Add(valid).UTC().Truncate(time.Second)
	token, err := m.Keys.SignToken(link.Link{
		Tenant: req.Tenant, Thread: req.Thread, Interrupt: req.Interrupt, Principal: req.Principal, Groups: req.Groups,
		Etag: req.Etag, NotAfter: ends, Preset: string(req.Preset),
	})
	if wrong, ok := errors.AsType[*link.FieldError](err); ok {
		return wire.Link{}, runtime.Errorf(runtime.ReasonInvalidField, "%v", wrong).
			With("field", wrong.Field).WithViolation(wrong.Field, "%s; want %s", wrong.Is, wrong.Want)
	}
	if err != nil {
		return wire.Link{}, err
	}
	path := link.PathPrefix + token
	return wire.Link{URL: strings.TrimSuffix(m.BaseURL, "/") + path, Path: path, Expires: ends}, nil
}

// checkPerson refuses names that no credentials could have.
func checkPerson(req *wire.LinkRequest) error {
	err := identity.CheckName("principal", req.Principal)
	if err == nil {
		err = identity.CheckNames("groups", req.Groups)
	}
	if wrong, ok := errors.AsType[*identity.PrincipalError](err); ok {
		return runtime.Errorf(runtime.ReasonInvalidField, "%v", wrong).
			With("field", wrong.Field).WithViolation(wrong.Field, "%s; want %s", wrong.Is, wrong.Want)
	}
	return err
}
