// Package link makes and reads links: signed texts by which one person answers one
// question. A server keeps nothing of a link, so every server with the same keys knows it.
package link

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// PathPrefix begins the path of every link.
const PathPrefix = "/a/"

// Bounds of a link.
const (
	MaxTokenBytes  = 6 << 10 // of the text after PathPrefix
	MaxPresetBytes = 1 << 10
	MaxGroups      = 32
	maxFieldBytes  = 256 // of each name and id
)

// Link says who may answer which question, and until when. The names are as clients of the
// tenant know them.
type Link struct {
	Tenant    string
	Thread    string
	Interrupt string
	Principal string
	Groups    []string // of the principal
	// Etag is that of the question to which the link is bound; "" = it is valid for
	// every state of the question.
	Etag string
	// NotAfter is when the link ends, in whole seconds.
	NotAfter time.Time
	Preset   string // JSON of an answer that the form begins with; "" = none
}

// IsBound reports whether the link ends with the next change of its question.
func (l *Link) IsBound() bool { return l.Etag != "" }

// A FieldError says which value of a link is out of bounds.
type FieldError struct {
	Field string
	Is    string
	Want  string
}

// Error names the field, the problem and the bound.
func (e *FieldError) Error() string { return e.Field + " " + e.Is + ": want " + e.Want }

// checkFields checks the bounds of all values. The error is a *FieldError.
func (l *Link) checkFields() error {
	for _, f := range []struct{ name, value string }{
		{"tenant", l.Tenant}, {"thread_id", l.Thread}, {"interrupt_id", l.Interrupt}, {"principal", l.Principal},
	} {
		if f.value == "" {
			return &FieldError{f.name, "is empty", "a name"}
		}
		if err := checkText(f.name, f.value, maxFieldBytes); err != nil {
			return err
		}
	}
	if len(l.Groups) > MaxGroups {
		return &FieldError{"groups", fmt.Sprintf("has %d names", len(l.Groups)), fmt.Sprintf("at most %d", MaxGroups)}
	}
	for _, name := range l.Groups {
		if name == "" {
			return &FieldError{"groups", "has an empty name", "names"}
		}
		if err := checkText("groups", name, maxFieldBytes); err != nil {
			return err
		}
	}
	if err := checkText("etag", l.Etag, maxFieldBytes); err != nil {
		return err
	}
	if l.NotAfter.Unix() <= 0 {
		return &FieldError{"not_after", "is not a time after 1970", "when the link ends"}
	}
	return checkText("preset", l.Preset, MaxPresetBytes)
}

func checkText(field, text string, most int) error {
	switch {
	case len(text) > most:
		return &FieldError{field, fmt.Sprintf("has %d bytes", len(text)), fmt.Sprintf("at most %d", most)}
	case !utf8.ValidString(text):
		return &FieldError{field, "is not UTF-8", "text in UTF-8"}
	}
	return nil
}
