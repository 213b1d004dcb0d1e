package capacity

import (
	"math"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// tenantSlots counts the slots of each tenant. Without limits of tenants all threads
// are of one tenant, "", and nothing is counted. Limiter.mu guards it.
type tenantSlots struct {
	limits   runtime.TenantLimits // nil = no tenant has a limit
	byTenant map[string]*slotUse  // of those that have slots
}

// slotUse is what the runs of a tenant have.
type slotUse struct {
	used    int                  // slots
	offered int                  // of them, those offered because no worker serves the run
	idle    map[*Holder]struct{} // those that could offer their slots
}

// ownerOf returns the tenant of a thread.
func (s *tenantSlots) ownerOf(thread string) string {
	if s.limits == nil {
		return ""
	}
	owner, _ := tenant.Split(thread)
	return owner
}

// findLimit returns how many slots a tenant may have.
func (s *tenantSlots) findLimit(owner string) (most int64, isLimited bool) {
	most = runtime.FindTenantLimit(s.limits, owner, runtime.HoldingLiveRuns)
	return most, most >= 0
}

// countFree returns how many further slots a tenant may have, math.MaxInt = any number.
func (s *tenantSlots) countFree(owner string) int {
	most, isLimited := s.findLimit(owner)
	if !isLimited {
		return math.MaxInt
	}
	used := 0
	if u := s.byTenant[owner]; u != nil {
		used = u.used
	}
	return int(max(0, most-int64(used)))
}

// checkFree returns a NoCapacityError if a tenant has as many slots as it may.
func (s *tenantSlots) checkFree(owner string) error {
	if s.countFree(owner) > 0 {
		return nil
	}
	most, _ := s.findLimit(owner)
	return &NoCapacityError{Tenant: owner, MostRuns: most}
}

// addSlot counts the slot of a run.
func (s *tenantSlots) addSlot(h *Holder) {
	if s.limits == nil {
		return
	}
	u := s.byTenant[h.tenant]
	if u == nil {
		u = &slotUse{}
		if s.byTenant == nil {
			s.byTenant = make(map[string]*slotUse)
		}
		s.byTenant[h.tenant] = u
	}
	u.used++
}

// removeSlot ends the count of a slot, and of its offer.
func (s *tenantSlots) removeSlot(h *Holder) {
	u := s.byTenant[h.tenant]
	if u == nil {
		return
	}
	u.used--
	delete(u.idle, h)
	if h.offersSlot {
		u.offered--
	}
	if u.used == 0 {
		delete(s.byTenant, h.tenant)
	}
}

// addIdle notes a run that could offer its slot.
func (s *tenantSlots) addIdle(h *Holder) {
	if u := s.byTenant[h.tenant]; u != nil {
		if u.idle == nil {
			u.idle = make(map[*Holder]struct{})
		}
		u.idle[h] = struct{}{}
	}
}

// removeIdle ends that, since the run is asked for its slot or offers it.
func (s *tenantSlots) removeIdle(h *Holder) {
	if u := s.byTenant[h.tenant]; u != nil {
		delete(u.idle, h)
	}
}

// addOffer counts the offer of a slot.
func (s *tenantSlots) addOffer(h *Holder) {
	if u := s.byTenant[h.tenant]; u != nil {
		u.offered++
	}
}

// countMissing returns how many slots a tenant is short of: beyond seven eighths of its
// limit, as a server is.
func (s *tenantSlots) countMissing(owner string) int {
	u := s.byTenant[owner]
	most, isLimited := s.findLimit(owner)
	if u == nil || !isLimited {
		return 0
	}
	return max(0, u.used-u.offered-int(most-max(1, most/8)))
}

// listIdle lists runs of a tenant that could offer their slots, at most that many.
func (s *tenantSlots) listIdle(owner string, most int) (list []*Holder) {
	u := s.byTenant[owner]
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
