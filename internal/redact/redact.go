// Package redact takes the parts of a value that not everybody sees out of it, and puts them back. The
// parts are kept in a type that shows them only to code that asks for them by name.
package redact

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Marker stands in a value in the place of a part that was taken out.
const Marker payload.JSON = `{"__redacted__": true}`

// Bounds of the pointers of a question.
const (
	MaxPointers      = 16
	MaxPointerLength = 256 // bytes
)

// Problem is what is wrong with a list of pointers.
type Problem struct {
	Index int // of the pointer, -1 = of the list
	Text  string
}

// CheckPointers returns what is wrong with pointers to secret parts. "" is the whole value.
func CheckPointers(pointers []string) (problems []Problem) {
	if n := len(pointers); n > MaxPointers {
		return []Problem{{-1, fmt.Sprintf("has %d pointers; the limit is %d", n, MaxPointers)}}
	}
	for i, pointer := range pointers {
		switch before := slices.IndexFunc(pointers[:i], func(other string) bool { return haveOverlap(other, pointer) }); {
		case len(pointer) > MaxPointerLength:
			problems = append(problems, Problem{i, fmt.Sprintf("has %d bytes; the limit is %d", len(pointer), MaxPointerLength)})
		case pointer != "" && !payload.IsPointer(pointer):
			problems = append(problems, Problem{i, strconv.Quote(pointer) + ` is no JSON pointer; want one like "/card/number", or "" for the whole`})
		case before >= 0:
			problems = append(problems, Problem{i, strconv.Quote(pointer) + " and " + strconv.Quote(pointers[before]) + " overlap; leave out the longer one"})
		}
	}
	return problems
}

// haveOverlap reports whether one of two pointers leads to a part of what the other leads to.
func haveOverlap(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// Overlaps reports whether a pointer leads to a secret part, into it, or to a value that has it.
func Overlaps(pointers []string, pointer string) bool {
	return slices.ContainsFunc(pointers, func(secret string) bool { return haveOverlap(secret, pointer) })
}

// Hide takes the parts at pointers out of a value. Marker stands in their place, all other text
// stays as it is. Without pointers the value is not looked at. The error is that of a value that is
// not JSON.
func Hide(value payload.JSON, pointers []string) (payload.JSON, Parts, error) {
	if len(pointers) == 0 || value == "" {
		return value, Parts{}, nil
	}
	var list []part
	shown, err := payload.ReplaceAt(value, pointers, func(pointer string, hidden payload.JSON) payload.JSON {
		list = append(list, part{pointer, payload.JSON(strings.Clone(string(hidden)))})
		return Marker
	})
	if err != nil {
		return "", Parts{}, err
	}
	return shown, newParts(list), nil
}

// IsShownAs reports whether a value is shown as another one: both are JSON and equal, but for the
// parts of the first one at pointers.
func IsShownAs(value, shown string, pointers []string) bool {
	own, _, err := Hide(payload.JSON(value), pointers)
	return err == nil && payload.Equal(own, payload.JSON(shown))
}

// errMismatch says that a value is not the one from which the parts were taken.
var errMismatch = errors.New("the secret parts do not belong to the value")

// Restore puts the parts back into the value from which they were taken, character by character. The
// error says that they do not belong to it.
func (p Parts) Restore(shown payload.JSON) (payload.JSON, error) {
	return p.restoreIf(shown, func(string) bool { return true })
}

// RestoreAt is Restore for the parts at some of the pointers.
func (p Parts) RestoreAt(shown payload.JSON, pointers []string) (payload.JSON, error) {
	return p.restoreIf(shown, func(pointer string) bool { return slices.Contains(pointers, pointer) })
}

func (p Parts) restoreIf(shown payload.JSON, chosen func(pointer string) bool) (payload.JSON, error) {
	if p.IsEmpty() {
		return shown, nil
	}
	left, belongs := p.listParts(), true
	whole, err := payload.ReplaceAt(shown, p.Pointers(), func(pointer string, marker payload.JSON) payload.JSON {
		if len(left) == 0 || left[0].pointer != pointer || marker != Marker {
			belongs = false
			return marker
		}
		hidden := left[0].value
		left = left[1:]
		if !chosen(pointer) {
			return marker
		}
		return hidden
	})
	if err != nil || !belongs || len(left) > 0 {
		return "", errMismatch
	}
	return whole, nil
}

// Value is a value with its hidden parts apart.
type Value struct {
	Shown  payload.JSON
	Hidden Parts
}

// Equal reports whether two values are equal, hidden parts included. It does not say where they
// differ.
func Equal(a, b Value) bool {
	if a.Hidden.IsEmpty() && b.Hidden.IsEmpty() {
		return payload.Equal(a.Shown, b.Shown)
	}
	one, err := a.Hidden.Restore(a.Shown)
	if err != nil {
		return false
	}
	other, err := b.Hidden.Restore(b.Shown)
	return err == nil && payload.Equal(one, other)
}
