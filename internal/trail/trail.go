// Package trail keeps what happened to a question, in order: who asked, voted, answered, or
// said something. Entries are only appended, and each has the digest of the entry before, so
// that an entry can't be changed without a trace. It has no state and does no I/O.
package trail

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Bounds of a trail.
const (
	// MaxCommentBytes bounds the records of a trail to which a comment is appended.
	MaxCommentBytes = 48 << 10
	// MaxBytes bounds those to which a claim, its end, a delegation or what was revealed is
	// appended. Beyond it a claim and its end take effect without an entry: no caller can keep
	// others from a question by filling its trail. Delegations are refused, because they move
	// the right to answer, and so is to reveal, which nothing else would tell of. Votes,
	// answers, states and what operators change are always appended.
	MaxBytes = 64 << 10
	// MaxValueBytes bounds the value of an entry. Of a larger value the entry has the digest.
	MaxValueBytes = 1 << 10
)

// Kind is what an entry tells.
type Kind string

// Kinds of entries.
const (
	Asked      Kind = "asked"
	Voted      Kind = "voted"
	Answered   Kind = "answered"
	Used       Kind = "used" // the node has used the answer
	Expired    Kind = "expired"
	Cancelled  Kind = "cancelled"
	Superseded Kind = "superseded"
	Claimed    Kind = "claimed"
	Released   Kind = "released"
	Commented  Kind = "commented"
	Changed    Kind = "changed" // its assignees or its expiry, or an operator ended the claim
	Copied     Kind = "copied"  // with its thread
	Reminded   Kind = "reminded"
	Escalated  Kind = "escalated"
	Delegated  Kind = "delegated" // another user answers in the place of the principal
	Revealed   Kind = "revealed"  // a caller was shown secret parts
	Retracted  Kind = "retracted" // a vote or the answer, before it took effect
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{
		Asked, Voted, Answered, Used, Expired, Cancelled, Superseded, Claimed, Released, Commented, Changed, Copied, Reminded, Escalated, Delegated, Retracted, Revealed,
	}
}

// Entry is one thing that happened to a question. The zero value of a field says that the
// entry does not tell it.
type Entry struct {
	Number    int // 1 for the first
	Time      time.Time
	Kind      Kind
	Principal string // the authenticated caller
	How       string // kind of the credential that identified the caller
	Method    string // method by which it came
	Request   string // id of the request that brought it
	Note      string
	Agrees    bool         // of a vote
	Dismisses bool         // a vote or an answer without a value
	Value     payload.JSON // of a vote or an answer of at most MaxValueBytes
	// ValueDigest is the payload.CanonicalDigest of a larger value.
	ValueDigest string
	Seen        string   // of what was asked: digest of what the question shows
	Policy      string   // of what was asked: who may answer, in words
	Users       []string // who were reminded, or may answer as well
	Groups      []string
	Priority    string    // the new one
	Fields      []string  // that were changed, or the pointers that were shown
	Assignees   []string  // as they were changed
	Until       time.Time // the end of a claim, the changed expiry, or when the answer takes effect
	From        string    // the thread that was copied

	// Record is the entry as it is stored, Digest the SHA-256 of it, in hex.
	Record, Digest string
}

// record is an entry as it is stored. The order of its fields is part of the format.
type record struct {
	Number      int             `json:"number"`
	Previous    string          `json:"previous,omitempty"` // digest of the record before
	Time        time.Time       `json:"time"`
	Kind        Kind            `json:"kind"`
	Principal   string          `json:"principal,omitempty"`
	How         string          `json:"how,omitempty"`
	Method      string          `json:"method,omitempty"`
	Request     string          `json:"request,omitempty"`
	Note        string          `json:"note,omitempty"`
	Agrees      bool            `json:"agrees,omitempty"`
	Dismisses   bool            `json:"dismisses,omitempty"`
	Value       json.RawMessage `json:"value,omitempty"`
	ValueDigest string          `json:"value_digest,omitempty"`
	Seen        string          `json:"seen,omitempty"`
	Policy      string          `json:"policy,omitempty"`
	Users       []string        `json:"users,omitempty"`
	Groups      []string        `json:"groups,omitempty"`
	Priority    string          `json:"priority,omitempty"`
	Fields      []string        `json:"fields,omitempty"`
	Assignees   []string        `json:"assignees,omitempty"`
	Until       time.Time       `json:"until,omitzero"`
	From        string          `json:"from,omitempty"`
}

// Log is the trail of a question. The zero Log is empty. Append makes its slice anew, so
// copies of a Log may be kept.
type Log struct {
	Records []string
	Digest  string // of the last record, "" = none
	// State is the state of the question that the last entry about a state tells.
	State string
}

// IsEmpty reports whether there are no entries.
func (l *Log) IsEmpty() bool { return len(l.Records) == 0 }

// HasRoom reports whether an entry fits into a trail of at most so many bytes.
func (l *Log) HasRoom(e *Entry, most int) bool { return l.Size()+e.Size() <= most }

// Size returns about how many bytes the trail takes in memory.
func (l *Log) Size() int {
	n := 0
	for _, text := range l.Records {
		n += 16 + len(text)
	}
	return n
}

// Size estimates the bytes of the record of an entry.
func (e *Entry) Size() int {
	n := 256 + len(e.Principal) + len(e.Method) + len(e.Request) + countEscaped(e.Note) + len(e.Policy)
	for _, list := range [][]string{e.Users, e.Groups, e.Fields, e.Assignees} {
		for _, text := range list {
			n += 3 + len(text)
		}
	}
	return n
}

// countEscaped returns how many bytes a text has in JSON, at most.
func countEscaped(text string) int {
	n := len(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ':
			n += 5 // \u0001
		case c == '"', c == '\\', c == '<', c == '>', c == '&':
			n += 5
		}
	}
	return n
}

// Append adds an entry and returns its number. It fills in the number, the record and the
// digests.
func (l *Log) Append(e Entry) int {
	r := record{
		Number: len(l.Records) + 1, Previous: l.Digest, Time: e.Time.UTC(), Kind: e.Kind,
		Principal: e.Principal, How: e.How, Method: e.Method, Request: e.Request, Note: e.Note, Agrees: e.Agrees, Dismisses: e.Dismisses,
		Seen: e.Seen, Policy: e.Policy, Users: e.Users, Groups: e.Groups, Priority: e.Priority, Fields: e.Fields, Assignees: e.Assignees, From: e.From,
	}
	if !e.Until.IsZero() {
		r.Until = e.Until.UTC()
	}
	switch {
	case e.Value == "":
	case len(e.Value) <= MaxValueBytes:
		r.Value = json.RawMessage(e.Value)
	default:
		r.ValueDigest = payload.CanonicalDigest(e.Value)
	}
	text := encodeRecord(&r)
	l.Records = append(slices.Clip(l.Records), text)
	l.Digest = digestRecord(text)
	return r.Number
}

func encodeRecord(r *record) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil { // a value that is no JSON: values are checked where they come in
		r.Value, r.ValueDigest = nil, digestRecord(string(r.Value))
		b.Reset()
		_ = enc.Encode(r) // texts and times are always encoded
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

func digestRecord(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// BrokenError says which entry is not what it was when it was appended.
type BrokenError struct {
	Number int
	Text   string
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("entry %d of the trail %s", e.Number, e.Text)
}

// Entries reads the entries. It returns a *BrokenError, beside the entries before, when an
// entry can't be read or was changed.
func (l *Log) Entries() ([]Entry, error) {
	entries := make([]Entry, 0, len(l.Records))
	previous := ""
	for i, text := range l.Records {
		var r record
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return entries, &BrokenError{i + 1, "can't be read"}
		}
		switch {
		case r.Previous != previous && i > 0:
			return entries[:i-1], &BrokenError{i, "was changed: the entry after it names another digest"}
		case r.Previous != previous || r.Number != i+1:
			return entries, &BrokenError{i + 1, "does not follow the entry before it"}
		}
		previous = digestRecord(text)
		entries = append(entries, r.toEntry(text, previous))
	}
	if n := len(entries); previous != l.Digest {
		return entries[:max(0, n-1)], &BrokenError{n, "was changed, or entries after it are missing"}
	}
	return entries, nil
}

func (r *record) toEntry(text, digest string) Entry {
	return Entry{
		Number: r.Number, Time: r.Time, Kind: r.Kind, Principal: r.Principal, How: r.How, Method: r.Method, Request: r.Request,
		Note: r.Note, Agrees: r.Agrees, Dismisses: r.Dismisses, Value: payload.JSON(r.Value), ValueDigest: r.ValueDigest,
		Seen: r.Seen, Policy: r.Policy, Users: r.Users, Groups: r.Groups, Priority: r.Priority, Fields: r.Fields, Assignees: r.Assignees, Until: r.Until, From: r.From, Record: text, Digest: digest,
	}
}
