package runtime

// Holding is a kind of thing that a tenant holds and that has a limit, as the file of the
// limits and errors name it.
type Holding string

// The kinds.
const (
	HoldingLiveRuns      Holding = "live_runs"
	HoldingQueuedRuns    Holding = "queued_runs"
	HoldingOpenQuestions Holding = "open_questions"
	HoldingThreads       Holding = "threads"
	HoldingStateBytes    Holding = "state_bytes"
	HoldingGraphs        Holding = "graphs"
)

// NoTenantLimit is the limit of a tenant that has none.
const NoTenantLimit = -1

// TenantLimits know how much each tenant may hold. A limit may change at any time. Every
// start asks for limits: an answer must not wait.
type TenantLimits interface {
	// FindTenantLimit returns a limit of a tenant, or NoTenantLimit.
	FindTenantLimit(tenant string, of Holding) int64
}

// FindTenantLimit returns a limit of a tenant, or NoTenantLimit; without limits, none has
// one.
func FindTenantLimit(limits TenantLimits, tenant string, of Holding) int64 {
	if limits == nil {
		return NoTenantLimit
	}
	return limits.FindTenantLimit(tenant, of)
}

// CallerLimits know how much each caller may hold in its tenant. A limit may change at any
// time.
type CallerLimits interface {
	// HasCallerLimits reports whether any caller has a limit of the kind.
	HasCallerLimits(of Holding) bool
	// FindCallerLimit returns a limit of a caller, "" = the callers are not known, or
	// NoTenantLimit.
	FindCallerLimit(tenant, caller string, of Holding) int64
}

// TenantHolding is how much a tenant holds of one kind, and how much it may.
type TenantHolding struct {
	Tenant     string
	Of         Holding
	Held, Most int64
}

// TenantLimitError refuses a call because its tenant holds as much as it may. The error is
// an *Error QUOTA_EXCEEDED, which names the tenant's own limit.
func TenantLimitError(tenant string, of Holding, most int64) *Error {
	e := Errorf(ReasonQuotaExceeded, "the tenant %q has %d %s already, its limit (%s); nothing was stored",
		tenant, most, of.describeThings(), of).WithLimit(string(of), most, 0).With("of", "tenant")
	e.Quota = "tenant:" + tenant + "/" + string(of)
	return e
}

// CallerLimitError refuses a call because its caller holds as much as it may. The error is
// an *Error QUOTA_EXCEEDED, which names the caller's own limit.
func CallerLimitError(tenant string, of Holding, most int64) *Error {
	e := Errorf(ReasonQuotaExceeded, "the caller has %d %s already, its limit (%s); nothing was stored",
		most, of.describeThings(), of).WithLimit(string(of), most, 0).With("of", "caller")
	e.Quota = "tenant:" + tenant + "/caller/" + string(of)
	return e
}

func (h Holding) describeThings() string {
	switch h {
	case HoldingLiveRuns:
		return "runs that this server drives"
	case HoldingQueuedRuns:
		return "queued runs"
	case HoldingOpenQuestions:
		return "open questions"
	case HoldingStateBytes:
		return "bytes in a state"
	case HoldingThreads, HoldingGraphs:
	}
	return string(h)
}
