package checkpoint

import (
	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
)

// HiddenDigest returns the digest of the value with its secret parts, bound to the interrupt; "" when
// nothing in it is secret.
func (i *Interrupt) HiddenDigest() string {
	if i.Hidden.Value.IsEmpty() {
		return ""
	}
	whole, err := i.Hidden.Value.Restore(i.Value)
	if err != nil {
		return "broken" // equal to no digest
	}
	return payload.HiddenDigest(i.ID, whole, i.DriftIgnore)
}

// RestoreResponse returns the answer as it was given. The error says that the record is broken.
func (i *Interrupt) RestoreResponse() (payload.JSON, error) {
	return i.Hidden.Response.Restore(i.Response)
}

// HasAnswer reports whether the answer of the interrupt equals a value, secret parts included.
func (i *Interrupt) HasAnswer(shown payload.JSON, hidden redact.Parts) bool {
	return redact.Equal(redact.Value{Shown: i.Response, Hidden: i.Hidden.Response}, redact.Value{Shown: shown, Hidden: hidden})
}

// HideParts forgets the secret parts, for readers that must not have them.
func (i *Interrupt) HideParts() {
	i.Hidden = Hidden{}
	for n := range i.Votes {
		if i.Votes[n].Hidden.IsEmpty() {
			continue
		}
		shown := make([]approval.Vote, len(i.Votes)) // others may share them
		copy(shown, i.Votes)
		for m := range shown {
			shown[m].Hidden = redact.Parts{}
		}
		i.Votes = shown
		return
	}
}

// HidesParts reports whether the record has secret parts.
func (i *Interrupt) HidesParts() bool {
	if i.Hidden != (Hidden{}) {
		return true
	}
	if len(i.Secret) == 0 {
		return false
	}
	for n := range i.Votes {
		if !i.Votes[n].Hidden.IsEmpty() {
			return true
		}
	}
	return false
}
