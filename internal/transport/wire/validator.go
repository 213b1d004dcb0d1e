package wire

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// Bounds of the parts of a request besides payloads.
const (
	MaxIDLength         = 128
	MaxNameLength       = 128
	maxLabels           = 64
	maxLabelKeyLength   = 128
	maxLabelValueLength = 1024
	MaxTextLength       = 4096
	maxListEntries      = 1000
	maxNamespaceDepth   = 64 // of subgraphs
)

// Bounds of messages and of the payloads in them, unless an option sets others.
const (
	DefaultMaxPayload = 1 << 20 // bytes
	DefaultMaxDepth   = 128
	DefaultMaxMessage = 8 << 20 // bytes
)

// Validator collects all violations of a request, so that a client sees them at
// once. A bad payload has a reason of its own, which takes precedence.
type Validator struct {
	limits          payload.Limits
	tenant          string // whose threads, graphs and workers the request names; "" = it names none
	violations      []runtime.Violation
	exceededLimit   *graph.LimitError // the first limit among them, nil = none
	overridingError *runtime.Error
}

// NewValidator makes a validator of a request in a tenant; limits are those of each payload.
// The threads, graphs and workers that a request names are those of the tenant: what the
// checks of their names return is what the engine and the stores know them by.
func NewValidator(limits payload.Limits, owner string) *Validator {
	return &Validator{limits: limits, tenant: owner}
}

// Tenant returns the tenant of the request.
func (v *Validator) Tenant() string { return v.tenant }

// Err returns the error for all violations, nil when there are none. The error is a
// *runtime.Error: INVALID_FIELD, FEATURE_DISABLED, or the reason of a bad payload.
func (v *Validator) Err() error {
	if v.overridingError != nil {
		return v.overridingError
	}
	if len(v.violations) == 0 {
		return nil
	}
	first := v.violations[0]
	e := runtime.Errorf(runtime.ReasonInvalidField, "%s: %s", first.Field, first.Description).
		With("field", first.Field)
	e.Violations = v.violations
	if v.exceededLimit != nil {
		e = e.WithLimit(v.exceededLimit.ExceededLimit())
	}
	return e
}

// CheckSize refuses a text that is longer than an option allows.
func (v *Validator) CheckSize(field, option string, size, most int) {
	if most <= 0 || size <= most {
		return
	}
	v.AddViolation(field, "has %d bytes; at most %d are allowed (%s)", size, most, option)
	if v.exceededLimit == nil {
		v.exceededLimit = &graph.LimitError{Limit: option, Max: int64(most), Needed: int64(size)}
	}
}

// AddViolation adds a violation of a field.
func (v *Validator) AddViolation(field, format string, args ...any) {
	v.violations = append(v.violations, runtime.Violation{Field: field, Description: fmt.Sprintf(format, args...)})
}

// RequireSet refuses a field that is missing.
func (v *Validator) RequireSet(field string, ok bool) {
	if !ok {
		v.AddViolation(field, "must be set")
	}
}

// CheckID checks an id that must be given.
func (v *Validator) CheckID(field, id string) string {
	v.RequireSet(field, id != "")
	return v.CheckOptionalID(field, id)
}

// CheckOptionalID checks an id. An empty id is valid: the server chooses an id.
func (v *Validator) CheckOptionalID(field, id string) string {
	if len(id) > MaxIDLength {
		v.AddViolation(field, "has %d bytes; at most %d are allowed", len(id), MaxIDLength)
		return id
	}
	for i := range len(id) {
		if !IsIDByte(id[i]) {
			v.AddViolation(field, "%q has %q at byte %d; allowed are A-Z a-z 0-9 _ . : -", id, id[i], i)
			return id
		}
	}
	return id
}

// CheckThread checks the id of a thread that must be given.
func (v *Validator) CheckThread(field, id string) string {
	v.RequireSet(field, id != "")
	return v.CheckOptionalThread(field, id)
}

// CheckOptionalThread checks the id of a thread. An empty id is valid: the server chooses an
// id.
func (v *Validator) CheckOptionalThread(field, id string) string {
	return v.qualifyName(field, v.CheckOptionalID(field, id))
}

// CheckWorker checks the id of a worker, which must be given.
func (v *Validator) CheckWorker(field, id string) string {
	return v.qualifyName(field, v.CheckID(field, id))
}

// CheckFilterName checks the id of a thread, or the name of a graph, in a filter. It may
// have any length: then nothing has it.
func (v *Validator) CheckFilterName(field, name string) string {
	v.refuseSeparator(field, name)
	return v.qualifyName(field, name)
}

// qualifyName returns what the engine knows a name of the tenant by. A name with the
// separator was refused before.
func (v *Validator) qualifyName(field, name string) string {
	if name == "" || v.tenant == "" || strings.IndexByte(name, tenant.Separator) >= 0 {
		return name
	}
	qualified, err := tenant.Qualify(v.tenant, name)
	if err != nil {
		v.AddViolation(field, "%v", err)
	}
	return qualified
}

// refuseSeparator refuses a name with the separator of tenants: a client names what is in
// its own tenant.
func (v *Validator) refuseSeparator(field, name string) {
	if at := strings.IndexByte(name, tenant.Separator); at >= 0 {
		v.AddViolation(field, "%q has '@' at byte %d, which is in no name of a graph or a thread; a version has its own field",
			reason.ClipText(name, MaxNameLength), at)
	}
}

// IsIDByte reports whether a byte may be part of an id: the bytes of the names of tenants,
// so that no id has the separator between the two.
func IsIDByte(c byte) bool { return tenant.IsNameByte(c) }

// CheckName checks the length of a name. Its meaning is checked elsewhere.
func (v *Validator) CheckName(field, name string) string {
	if len(name) > MaxNameLength {
		v.AddViolation(field, "has %d bytes; at most %d are allowed", len(name), MaxNameLength)
	}
	return name
}

// CheckGraphName checks the name of a graph as clients give it.
func (v *Validator) CheckGraphName(field, name string) string {
	v.refuseSeparator(field, name)
	return v.qualifyName(field, v.CheckName(field, name))
}

// CheckNames checks the names in a list.
func (v *Validator) CheckNames(field string, names []string) []string {
	if len(names) > maxListEntries {
		v.AddViolation(field, "has %d entries; at most %d are allowed", len(names), maxListEntries)
		return nil
	}
	for i, n := range names {
		at := elementPath(field, i)
		v.RequireSet(at, n != "")
		v.CheckName(at, n)
	}
	return names
}

// CheckText checks the length of a text.
func (v *Validator) CheckText(field, text string) string {
	if len(text) > MaxTextLength {
		v.AddViolation(field, "has %d bytes; at most %d are allowed", len(text), MaxTextLength)
	}
	return text
}

// CheckLabels checks the number and the lengths of labels.
func (v *Validator) CheckLabels(field string, labels map[string]string) map[string]string {
	if len(labels) > maxLabels {
		v.AddViolation(field, "has %d labels; at most %d are allowed", len(labels), maxLabels)
		return nil
	}
	for name, value := range labels {
		switch {
		case name == "":
			v.AddViolation(field, "a label has no key")
		case len(name) > maxLabelKeyLength:
			v.AddViolation(field, "a key has %d bytes; at most %d are allowed", len(name), maxLabelKeyLength)
		case len(value) > maxLabelValueLength:
			v.AddViolation(field, "the value of %q has %d bytes; at most %d are allowed", name, len(value), maxLabelValueLength)
		}
	}
	return labels
}

// ConvertDuration converts a duration that must not be negative; unset is 0.
func (v *Validator) ConvertDuration(field string, d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if err := d.CheckValid(); err != nil {
		v.AddViolation(field, "is not a duration between 0 and 10000 years")
		return 0
	}
	if d.AsDuration() < 0 {
		v.AddViolation(field, "is negative (%s)", d.AsDuration())
		return 0
	}
	return d.AsDuration()
}

// convertPositiveDuration converts a duration that must not be zero, because zero
// would not mean what a client expects. Unset is 0.
func (v *Validator) convertPositiveDuration(field string, d *durationpb.Duration) time.Duration {
	if d != nil && d.GetSeconds() == 0 && d.GetNanos() == 0 {
		v.AddViolation(field, "must be positive; leave it unset for none")
	}
	return v.ConvertDuration(field, d)
}

// convertTime converts a time; unset is the zero time.
func (v *Validator) convertTime(field string, t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	if err := t.CheckValid(); err != nil {
		v.AddViolation(field, "is not a time between the years 1 and 9999")
		return time.Time{}
	}
	return t.AsTime()
}

// ConvertPayload checks a payload and returns its text; "" when unset.
func (v *Validator) ConvertPayload(field string, p *graphdv1.Payload) payload.JSON {
	if p == nil {
		return ""
	}
	body, isJSON := p.GetBody().(*graphdv1.Payload_Json)
	switch {
	case p.GetBody() == nil:
		v.AddViolation(field, "has no body; set json, or leave the payload unset")
		return ""
	case !isJSON:
		v.refuseFeature(field+".data", "payloads that are not JSON")
		return ""
	case p.GetMediaType() != "" && p.GetMediaType() != "application/json":
		v.AddViolation(field+".media_type", "is %q; a json body is application/json", reason.ClipText(p.GetMediaType(), MaxNameLength))
		return ""
	case len(p.GetMetadata()) > 0:
		v.refuseFeature(field+".metadata", "payload metadata")
		return ""
	}
	if err := payload.Validate(body.Json, v.limits); err != nil {
		if e := reason.ToPayloadError(err); e != nil && v.overridingError == nil {
			v.overridingError = e.With("field", field).WithViolation(field+".json", "%v", err)
		}
		return ""
	}
	return payload.JSON(body.Json)
}

func (v *Validator) refuseFeature(field, what string) {
	if v.overridingError == nil {
		v.overridingError = runtime.Errorf(runtime.ReasonFeatureDisabled, "%s: %s are not supported", field, what).
			With("feature", what).With("field", field)
	}
}

// ParseEtag converts an etag to its revision; empty is 0, any.
func (v *Validator) ParseEtag(field, etag string) uint64 {
	if etag == "" {
		return 0
	}
	revision, err := strconv.ParseUint(etag, 10, 64)
	if err != nil || revision == 0 {
		v.AddViolation(field, "%q is not an etag of this server", reason.ClipText(etag, MaxNameLength))
	}
	return revision
}

// formatEtag returns the etag of a stored record. A record that was not read back
// from the store has none.
func formatEtag(revision uint64) string {
	if revision == 0 {
		return ""
	}
	return strconv.FormatUint(revision, 10)
}

func elementPath(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// ClampUint32 converts a number that is never negative and never large.
func ClampUint32(n int) uint32 { return uint32(max(0, min(int64(n), math.MaxUint32))) }

// IsValidID reports whether a client may use an id.
func IsValidID(id string) bool {
	v := &Validator{}
	v.CheckID("", id)
	return v.Err() == nil
}
