package quota

import (
	"fmt"
	"strconv"
	"time"
)

// ExceededError says which limit refuses a call. It names the caller's own tenant and
// nothing of others.
type ExceededError struct {
	Limit    Limit
	IsCaller bool   // the limit is the caller's own, and not that of its tenant
	Tenant   string // of the caller
	Rate     Rate   // of a rate
	Most     int64  // of a count
	// RetryAfter is the time until the rate allows the call if no other call comes
	// before. 0 for a count: a thing has to end first.
	RetryAfter time.Duration
}

// Error names the limit, its value and when to call again.
func (r *ExceededError) Error() string {
	if !r.Limit.IsRate() {
		return fmt.Sprintf("%s has %d %s at a time already, its limit", r.describeOwner(), r.Most, r.Limit.describeThings())
	}
	return fmt.Sprintf("%s makes more than %s %s per second, with %d at once: call again in %s",
		r.describeOwner(), formatRate(r.Rate.PerSecond), r.Limit.describeThings(), r.Rate.Burst, r.RetryAfter)
}

// Subject names the tenant and whose limit it is: tenant:acme/calls, or
// tenant:acme/caller/calls.
func (r *ExceededError) Subject() string {
	if r.IsCaller {
		return "tenant:" + r.Tenant + "/caller/" + r.Limit.String()
	}
	return "tenant:" + r.Tenant + "/" + r.Limit.String()
}

// OwnerKind says whose limit it is: tenant or caller.
func (r *ExceededError) OwnerKind() string {
	if r.IsCaller {
		return "caller"
	}
	return "tenant"
}

// FormatMost returns the value of the limit.
func (r *ExceededError) FormatMost() string {
	if r.Limit.IsRate() {
		return formatRate(r.Rate.PerSecond)
	}
	return strconv.FormatInt(r.Most, 10)
}

func formatRate(perSecond float64) string { return strconv.FormatFloat(perSecond, 'f', -1, 64) }

func (r *ExceededError) describeOwner() string {
	if r.IsCaller {
		return "the caller"
	}
	return "the tenant " + strconv.Quote(r.Tenant)
}

func (l Limit) describeThings() string {
	switch l {
	case Calls:
		return "calls"
	case Starts:
		return "calls that start runs"
	case Answers:
		return "calls that answer questions"
	case Streams:
		return "streams"
	default: // those of the engine are errors of the runtime
	}
	return l.String()
}
