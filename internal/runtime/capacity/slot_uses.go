package capacity

import (
	"math"
	"sync/atomic"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// slotUser is who uses a slot or waits for one: a tenant, or a caller in it.
type slotUser struct {
	tenant   string // "" where neither tenants nor callers have limits
	caller   string // "" = the caller without a name
	isCaller bool   // not the tenant as a whole
}

// ofTenant returns the tenant as a user.
func (u slotUser) ofTenant() slotUser { return slotUser{tenant: u.tenant} }

// knownCaller returns the user if it is a caller, else none.
func (u slotUser) knownCaller() slotUser {
	if u.isCaller {
		return u
	}
	return slotUser{}
}

// slotUses count the slots of tenants, and those of callers while any caller has a limit.
// Without limits all threads are of one tenant, "", and nothing is counted. Limiter.mu
// guards them.
type slotUses struct {
	tenants runtime.TenantLimits  // nil = no tenant has a limit
	callers runtime.CallerLimits  // nil = no caller has a limit
	byUser  map[slotUser]*slotUse // of those that have slots
	live    *Holder               // the first of those with slots; nil where callers is nil
	// countsCallers says that callers have limits, as far as recheckCallers was told. It is
	// read without the lock, too.
	countsCallers atomic.Bool
}

// slotUse is what the runs of a tenant or a caller have.
type slotUse struct {
	used    int                  // slots
	offered int                  // of them, those offered because no worker serves the run
	idle    map[*Holder]struct{} // those that could offer their slots
}

// tenantOf returns the tenant of a thread as a user.
func (s *slotUses) tenantOf(thread string) slotUser {
	if s.tenants == nil && s.callers == nil {
		return slotUser{}
	}
	owner, _ := tenant.Split(thread)
	return slotUser{tenant: owner}
}

// findLimit returns how many slots a user may have.
func (s *slotUses) findLimit(user slotUser) (most int64, isLimited bool) {
	switch {
	case !user.isCaller:
		most = runtime.FindTenantLimit(s.tenants, user.tenant, runtime.HoldingLiveRuns)
	case s.countsCallers.Load():
		most = s.callers.FindCallerLimit(user.tenant, user.caller, runtime.HoldingLiveRuns)
	default:
		most = runtime.NoTenantLimit
	}
	return most, most >= 0
}

// countFree returns how many further slots a user may have by its own limit, math.MaxInt =
// any number.
func (s *slotUses) countFree(user slotUser) int {
	most, isLimited := s.findLimit(user)
	if !isLimited {
		return math.MaxInt
	}
	used := 0
	if u := s.byUser[user]; u != nil {
		used = u.used
	}
	return int(max(0, most-int64(used)))
}

// checkFree returns a NoCapacityError if a tenant, or its caller, has as many slots as it
// may.
func (s *slotUses) checkFree(user slotUser) error {
	full := user.ofTenant()
	if s.countFree(full) > 0 {
		if full = user; !user.isCaller || s.countFree(user) > 0 {
			return nil
		}
	}
	most, _ := s.findLimit(full)
	return &NoCapacityError{Tenant: user.tenant, IsOfCaller: full.isCaller, MostRuns: most, caller: user.knownCaller()}
}

// setCaller notes who has started the run of a holder, which has no slot.
func (s *slotUses) setCaller(h *Holder, caller string) {
	h.user.caller, h.user.isCaller, h.caller = "", false, caller
	if s.countsCallers.Load() {
		h.user.caller, h.user.isCaller = caller, true
	}
}

// recheckCallers takes up whether callers have limits. Those that are live are counted from
// then on, and among them those that could offer their slots.
func (s *slotUses) recheckCallers(idle map[*Holder]struct{}) {
	if s.callers == nil {
		return
	}
	s.countsCallers.Store(s.callers.HasCallerLimits(runtime.HoldingLiveRuns))
	if !s.countsCallers.Load() {
		return
	}
	for h := s.live; h != nil; h = h.next {
		if h.user.isCaller {
			continue
		}
		h.user.caller, h.user.isCaller = h.caller, true
		u := s.openUse(h.user)
		u.used++
		if h.offersSlot {
			u.offered++
		}
		if _, isIdle := idle[h]; isIdle {
			u.addIdle(h)
		}
	}
}

func (s *slotUses) openUse(user slotUser) *slotUse {
	u := s.byUser[user]
	if u == nil {
		u = &slotUse{}
		if s.byUser == nil {
			s.byUser = make(map[slotUser]*slotUse)
		}
		s.byUser[user] = u
	}
	return u
}

// addSlot counts the slot of a run.
func (s *slotUses) addSlot(h *Holder) {
	if s.callers != nil {
		s.linkHolder(h)
	}
	if s.tenants != nil {
		s.openUse(h.user.ofTenant()).used++
	}
	if h.user.isCaller {
		s.openUse(h.user).used++
	}
}

// removeSlot ends the count of a slot, and of its offer.
func (s *slotUses) removeSlot(h *Holder) {
	if s.callers != nil {
		s.unlinkHolder(h)
	}
	s.visitUses(h, func(user slotUser, u *slotUse) {
		u.used--
		delete(u.idle, h)
		if h.offersSlot {
			u.offered--
		}
		if u.used == 0 {
			delete(s.byUser, user)
		}
	})
}

// visitUses calls a function with what the tenant of a run has, and its caller, where that
// is counted.
func (s *slotUses) visitUses(h *Holder, f func(user slotUser, u *slotUse)) {
	if u := s.byUser[h.user.ofTenant()]; u != nil {
		f(h.user.ofTenant(), u)
	}
	if !h.user.isCaller {
		return
	}
	if u := s.byUser[h.user]; u != nil {
		f(h.user, u)
	}
}

// linkHolder adds a holder to the list of those with slots.
func (s *slotUses) linkHolder(h *Holder) {
	if h.next = s.live; h.next != nil {
		h.next.previous = h
	}
	s.live = h
}

// unlinkHolder removes a holder from the list.
func (s *slotUses) unlinkHolder(h *Holder) {
	if h.next != nil {
		h.next.previous = h.previous
	}
	if h.previous != nil {
		h.previous.next = h.next
	} else {
		s.live = h.next
	}
	h.previous, h.next = nil, nil
}

// addIdle notes a run that could offer its slot.
func (s *slotUses) addIdle(h *Holder) {
	s.visitUses(h, func(_ slotUser, u *slotUse) { u.addIdle(h) })
}

func (u *slotUse) addIdle(h *Holder) {
	if u.idle == nil {
		u.idle = make(map[*Holder]struct{})
	}
	u.idle[h] = struct{}{}
}

// removeIdle ends that, since the run is asked for its slot or offers it.
func (s *slotUses) removeIdle(h *Holder) {
	s.visitUses(h, func(_ slotUser, u *slotUse) { delete(u.idle, h) })
}

// addOffer counts the offer of a slot.
func (s *slotUses) addOffer(h *Holder) {
	s.visitUses(h, func(_ slotUser, u *slotUse) { u.offered++ })
}

// isShort reports whether a tenant, or its caller, is short of slots.
func (s *slotUses) isShort(user slotUser) bool {
	return s.countMissing(user.ofTenant()) > 0 || user.isCaller && s.countMissing(user) > 0
}

// countMissing returns how many slots a user is short of: beyond seven eighths of its
// limit, as a server is.
func (s *slotUses) countMissing(user slotUser) int {
	u := s.byUser[user]
	if u == nil {
		return 0
	}
	most, isLimited := s.findLimit(user)
	if !isLimited {
		return 0
	}
	return max(0, u.used-u.offered-int(most-max(1, most/8)))
}

// listIdle lists runs of a user that could offer their slots, at most that many.
func (s *slotUses) listIdle(user slotUser, most int) (list []*Holder) {
	u := s.byUser[user]
	if u == nil {
		return nil
	}
	for h := range u.idle {
		if len(list) >= most {
			break
		}
		list = append(list, h)
	}
	return list
}

// countSlots counts the slots that are counted for tenants, and for callers.
func (s *slotUses) countSlots() (ofTenants, ofCallers int) {
	for user, u := range s.byUser {
		if user.isCaller {
			ofCallers += u.used
		} else {
			ofTenants += u.used
		}
	}
	return ofTenants, ofCallers
}
