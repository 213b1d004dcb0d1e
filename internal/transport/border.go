package transport

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Bounds of what a request may carry besides payloads.
const (
	maxID         = 128
	maxName       = 128
	maxLabels     = 64
	maxLabelKey   = 128
	maxLabelValue = 1024
	maxText       = 4096
	maxNames      = 1000
	maxDepth      = 64 // of subgraphs
)

// border collects what is wrong with a request, so that a client sees all of
// it at once. A bad payload has a reason of its own and goes first.
type border struct {
	limits payload.Limits
	bad    []runtime.Violation
	over   *graph.LimitError // the first limit among them, nil = none
	fault  *runtime.Error
}

// err returns the error for all that was found, nil when there is nothing.
func (b *border) err() error {
	if b.fault != nil {
		return b.fault
	}
	if len(b.bad) == 0 {
		return nil
	}
	first := b.bad[0]
	e := runtime.Errorf(runtime.ReasonInvalidField, "%s: %s", first.Field, first.Description).
		With("field", first.Field)
	e.Violations = b.bad
	if b.over != nil {
		e = e.Beyond(b.over.Bound())
	}
	return e
}

// within refuses a text that is longer than an option allows.
func (b *border) within(field, option string, size, most int) {
	if most <= 0 || size <= most {
		return
	}
	b.refuse(field, "has %d bytes; at most %d are allowed (%s)", size, most, option)
	if b.over == nil {
		b.over = &graph.LimitError{Limit: option, Most: int64(most), Need: int64(size)}
	}
}

func (b *border) refuse(field, format string, args ...any) {
	b.bad = append(b.bad, runtime.Violation{Field: field, Description: fmt.Sprintf(format, args...)})
}

// must refuses a field that is missing.
func (b *border) must(field string, ok bool) {
	if !ok {
		b.refuse(field, "must be set")
	}
}

// id checks an id that must be given.
func (b *border) id(field, id string) string {
	b.must(field, id != "")
	return b.optionalID(field, id)
}

// optionalID checks an id; empty is left to the server.
func (b *border) optionalID(field, id string) string {
	if len(id) > maxID {
		b.refuse(field, "has %d bytes; at most %d are allowed", len(id), maxID)
		return id
	}
	for i := range len(id) {
		if !idByte(id[i]) {
			b.refuse(field, "%q has %q at byte %d; allowed are A-Z a-z 0-9 _ . : -", id, id[i], i)
			return id
		}
	}
	return id
}

func idByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	case c == '_', c == '.', c == ':', c == '-':
		return true
	}
	return false
}

// name checks the length of a name that something else gives a meaning to.
func (b *border) name(field, name string) string {
	if len(name) > maxName {
		b.refuse(field, "has %d bytes; at most %d are allowed", len(name), maxName)
	}
	return name
}

func (b *border) names(field string, names []string) []string {
	if len(names) > maxNames {
		b.refuse(field, "has %d entries; at most %d are allowed", len(names), maxNames)
		return nil
	}
	for i, n := range names {
		at := indexed(field, i)
		b.must(at, n != "")
		b.name(at, n)
	}
	return names
}

func (b *border) text(field, text string) string {
	if len(text) > maxText {
		b.refuse(field, "has %d bytes; at most %d are allowed", len(text), maxText)
	}
	return text
}

func (b *border) labels(field string, labels map[string]string) map[string]string {
	if len(labels) > maxLabels {
		b.refuse(field, "has %d labels; at most %d are allowed", len(labels), maxLabels)
		return nil
	}
	for k, v := range labels {
		switch {
		case k == "":
			b.refuse(field, "a label has no key")
		case len(k) > maxLabelKey:
			b.refuse(field, "a key has %d bytes; at most %d are allowed", len(k), maxLabelKey)
		case len(v) > maxLabelValue:
			b.refuse(field, "the value of %q has %d bytes; at most %d are allowed", k, len(v), maxLabelValue)
		}
	}
	return labels
}

// duration converts a duration that must not be negative; unset is 0.
func (b *border) duration(field string, d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if err := d.CheckValid(); err != nil {
		b.refuse(field, "is not a duration between 0 and 10000 years")
		return 0
	}
	if d.AsDuration() < 0 {
		b.refuse(field, "is negative (%s)", d.AsDuration())
		return 0
	}
	return d.AsDuration()
}

// positive converts a duration for which zero would be a trap: unset is 0, and
// 0 is refused.
func (b *border) positive(field string, d *durationpb.Duration) time.Duration {
	if d != nil && d.GetSeconds() == 0 && d.GetNanos() == 0 {
		b.refuse(field, "must be positive; leave it unset for none")
	}
	return b.duration(field, d)
}

// instant converts a time; unset is the zero time.
func (b *border) instant(field string, t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	if err := t.CheckValid(); err != nil {
		b.refuse(field, "is not a time between the years 1 and 9999")
		return time.Time{}
	}
	return t.AsTime()
}

// payload takes the text out of a payload after checking it; "" when unset.
func (b *border) payload(field string, p *graphdv1.Payload) payload.JSON {
	if p == nil {
		return ""
	}
	body, isJSON := p.GetBody().(*graphdv1.Payload_Json)
	switch {
	case p.GetBody() == nil:
		b.refuse(field, "has no body; set json, or leave the payload unset")
		return ""
	case !isJSON:
		b.disabled(field+".data", "payloads that are not JSON")
		return ""
	case p.GetMediaType() != "" && p.GetMediaType() != "application/json":
		b.refuse(field+".media_type", "is %q; a json body is application/json", clip(p.GetMediaType(), maxName))
		return ""
	case len(p.GetMetadata()) > 0:
		b.disabled(field+".metadata", "payload metadata")
		return ""
	}
	if err := payload.Validate(body.Json, b.limits); err != nil {
		if e := payloadRefusal(err); e != nil && b.fault == nil {
			b.fault = e.With("field", field).InField(field+".json", "%v", err)
		}
		return ""
	}
	return payload.JSON(body.Json)
}

func (b *border) disabled(field, what string) {
	if b.fault == nil {
		b.fault = runtime.Errorf(runtime.ReasonFeatureDisabled, "%s: %s are not supported", field, what).
			With("feature", what).With("field", field)
	}
}

// etag converts an etag to the revision it stands for; empty is 0, any.
func (b *border) etag(field, etag string) uint64 {
	if etag == "" {
		return 0
	}
	revision, err := strconv.ParseUint(etag, 10, 64)
	if err != nil || revision == 0 {
		b.refuse(field, "%q is not an etag of this server", clip(etag, maxName))
	}
	return revision
}

// etagOf is the etag of a stored record; a record that was not read back from
// the store has none.
func etagOf(revision uint64) string {
	if revision == 0 {
		return ""
	}
	return strconv.FormatUint(revision, 10)
}

func indexed(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// count converts a number that is never negative and never large.
func count(n int) uint32 { return uint32(max(0, min(n, math.MaxUint32))) }
