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
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// Bounds of what a request may carry besides payloads.
const (
	maxIDLength         = 128
	maxNameLength       = 128
	maxLabels           = 64
	maxLabelKeyLength   = 128
	maxLabelValueLength = 1024
	maxTextLength       = 4096
	maxListEntries      = 1000
	maxNamespaceDepth   = 64 // of subgraphs
)

// validator collects what is wrong with a request, so that a client sees all of
// it at once. A bad payload has a reason of its own and goes first.
type validator struct {
	limits          payload.Limits
	violations      []runtime.Violation
	exceededLimit   *graph.LimitError // the first limit among them, nil = none
	overridingError *runtime.Error
}

// err returns the error for all that was found, nil when there is nothing.
func (b *validator) err() error {
	if b.overridingError != nil {
		return b.overridingError
	}
	if len(b.violations) == 0 {
		return nil
	}
	first := b.violations[0]
	e := runtime.Errorf(runtime.ReasonInvalidField, "%s: %s", first.Field, first.Description).
		With("field", first.Field)
	e.Violations = b.violations
	if b.exceededLimit != nil {
		e = e.WithLimit(b.exceededLimit.ExceededLimit())
	}
	return e
}

// checkSize refuses a text that is longer than an option allows.
func (b *validator) checkSize(field, option string, size, most int) {
	if most <= 0 || size <= most {
		return
	}
	b.addViolation(field, "has %d bytes; at most %d are allowed (%s)", size, most, option)
	if b.exceededLimit == nil {
		b.exceededLimit = &graph.LimitError{Limit: option, Max: int64(most), Needed: int64(size)}
	}
}

func (b *validator) addViolation(field, format string, args ...any) {
	b.violations = append(b.violations, runtime.Violation{Field: field, Description: fmt.Sprintf(format, args...)})
}

// requireSet refuses a field that is missing.
func (b *validator) requireSet(field string, ok bool) {
	if !ok {
		b.addViolation(field, "must be set")
	}
}

// checkID checks an id that must be given.
func (b *validator) checkID(field, id string) string {
	b.requireSet(field, id != "")
	return b.checkOptionalID(field, id)
}

// checkOptionalID checks an id; empty is left to the server.
func (b *validator) checkOptionalID(field, id string) string {
	if len(id) > maxIDLength {
		b.addViolation(field, "has %d bytes; at most %d are allowed", len(id), maxIDLength)
		return id
	}
	for i := range len(id) {
		if !isIDByte(id[i]) {
			b.addViolation(field, "%q has %q at byte %d; allowed are A-Z a-z 0-9 _ . : -", id, id[i], i)
			return id
		}
	}
	return id
}

func isIDByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	case c == '_', c == '.', c == ':', c == '-':
		return true
	}
	return false
}

// checkName checks the length of a name that something else gives a meaning to.
func (b *validator) checkName(field, name string) string {
	if len(name) > maxNameLength {
		b.addViolation(field, "has %d bytes; at most %d are allowed", len(name), maxNameLength)
	}
	return name
}

func (b *validator) checkNames(field string, names []string) []string {
	if len(names) > maxListEntries {
		b.addViolation(field, "has %d entries; at most %d are allowed", len(names), maxListEntries)
		return nil
	}
	for i, n := range names {
		at := elementPath(field, i)
		b.requireSet(at, n != "")
		b.checkName(at, n)
	}
	return names
}

func (b *validator) checkText(field, text string) string {
	if len(text) > maxTextLength {
		b.addViolation(field, "has %d bytes; at most %d are allowed", len(text), maxTextLength)
	}
	return text
}

func (b *validator) checkLabels(field string, labels map[string]string) map[string]string {
	if len(labels) > maxLabels {
		b.addViolation(field, "has %d labels; at most %d are allowed", len(labels), maxLabels)
		return nil
	}
	for k, v := range labels {
		switch {
		case k == "":
			b.addViolation(field, "a label has no key")
		case len(k) > maxLabelKeyLength:
			b.addViolation(field, "a key has %d bytes; at most %d are allowed", len(k), maxLabelKeyLength)
		case len(v) > maxLabelValueLength:
			b.addViolation(field, "the value of %q has %d bytes; at most %d are allowed", k, len(v), maxLabelValueLength)
		}
	}
	return labels
}

// convertDuration converts a duration that must not be negative; unset is 0.
func (b *validator) convertDuration(field string, d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if err := d.CheckValid(); err != nil {
		b.addViolation(field, "is not a duration between 0 and 10000 years")
		return 0
	}
	if d.AsDuration() < 0 {
		b.addViolation(field, "is negative (%s)", d.AsDuration())
		return 0
	}
	return d.AsDuration()
}

// convertPositiveDuration converts a duration for which zero would be a trap: unset is 0, and
// 0 is refused.
func (b *validator) convertPositiveDuration(field string, d *durationpb.Duration) time.Duration {
	if d != nil && d.GetSeconds() == 0 && d.GetNanos() == 0 {
		b.addViolation(field, "must be positive; leave it unset for none")
	}
	return b.convertDuration(field, d)
}

// convertTime converts a time; unset is the zero time.
func (b *validator) convertTime(field string, t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	if err := t.CheckValid(); err != nil {
		b.addViolation(field, "is not a time between the years 1 and 9999")
		return time.Time{}
	}
	return t.AsTime()
}

// convertPayload takes the text out of a payload after checking it; "" when unset.
func (b *validator) convertPayload(field string, p *graphdv1.Payload) payload.JSON {
	if p == nil {
		return ""
	}
	body, isJSON := p.GetBody().(*graphdv1.Payload_Json)
	switch {
	case p.GetBody() == nil:
		b.addViolation(field, "has no body; set json, or leave the payload unset")
		return ""
	case !isJSON:
		b.refuseFeature(field+".data", "payloads that are not JSON")
		return ""
	case p.GetMediaType() != "" && p.GetMediaType() != "application/json":
		b.addViolation(field+".media_type", "is %q; a json body is application/json", reason.ClipText(p.GetMediaType(), maxNameLength))
		return ""
	case len(p.GetMetadata()) > 0:
		b.refuseFeature(field+".metadata", "payload metadata")
		return ""
	}
	if err := payload.Validate(body.Json, b.limits); err != nil {
		if e := reason.ToPayloadError(err); e != nil && b.overridingError == nil {
			b.overridingError = e.With("field", field).WithViolation(field+".json", "%v", err)
		}
		return ""
	}
	return payload.JSON(body.Json)
}

func (b *validator) refuseFeature(field, what string) {
	if b.overridingError == nil {
		b.overridingError = runtime.Errorf(runtime.ReasonFeatureDisabled, "%s: %s are not supported", field, what).
			With("feature", what).With("field", field)
	}
}

// parseEtag converts an etag to the revision it stands for; empty is 0, any.
func (b *validator) parseEtag(field, etag string) uint64 {
	if etag == "" {
		return 0
	}
	revision, err := strconv.ParseUint(etag, 10, 64)
	if err != nil || revision == 0 {
		b.addViolation(field, "%q is not an etag of this server", reason.ClipText(etag, maxNameLength))
	}
	return revision
}

// formatEtag is the etag of a stored record; a record that was not read back from
// the store has none.
func formatEtag(revision uint64) string {
	if revision == 0 {
		return ""
	}
	return strconv.FormatUint(revision, 10)
}

func elementPath(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// clampUint32 converts a number that is never negative and never large.
func clampUint32(n int) uint32 { return uint32(max(0, min(n, math.MaxUint32))) }
