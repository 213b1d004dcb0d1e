package sim

import "time"

// heartbeat is how often a server writes its entry of the roster.
const heartbeat = 3 * time.Second

// minSync is the least time between two exchanges of a server.
const minSync = 50 * time.Millisecond

// syncSpread is the time over which servers read a change, for each server.
const syncSpread = time.Millisecond

// rosterChange is a change of an entry of the roster.
type rosterChange struct {
	server string
	isGone bool
	isOnly bool // of the capabilities alone
}

// renewEntry exchanges the roster at each heartbeat.
func (s *server) renewEntry() {
	w := s.world
	life := s.sequence
	w.schedule(w.now+int64(heartbeat), func() {
		if s.sequence == life {
			s.renewEntry()
		}
	})
	s.syncRoster()
}

// syncRoster writes the entry of the server, and reads those of the others: all, or those that
// have changed.
func (s *server) syncRoster() {
	if !s.isUp {
		return
	}
	w := s.world
	returned := len(w.servers)
	if w.policy == Owners {
		returned = len(w.roster) - s.version
	}
	if w.masters[0].isDown(w.now) {
		return
	}
	cost := w.costs.RosterAll + time.Duration(returned)*w.costs.RosterMember
	at := w.masters[0].serve(w.now, int64(cost), useRoster)
	s.renewed = at
	version := len(w.roster)
	s.callAt(at, func() { s.takeRoster(version) })
}

// takeRoster takes what has changed in the roster.
func (s *server) takeRoster(version int) {
	w := s.world
	for ; s.version < version; s.version++ {
		c := w.roster[s.version]
		switch {
		case w.policy == All || c.isOnly || c.server == s.name:
		case c.isGone:
			s.planner.RemoveOther(c.server, s.uptime())
		default:
			s.planner.AddOther(c.server, s.uptime())
		}
	}
	if w.policy == Owners && !s.isBusy {
		s.lookAt(int64(s.planner.Next()))
	}
}

// changeRoster changes the roster, and tells the servers.
func (w *world) changeRoster(c rosterChange) {
	w.roster = append(w.roster, c)
	for _, s := range w.servers {
		if s.syncAt > w.now || !s.isUp { // it reads it then
			continue
		}
		wait := minSync
		if w.policy == Owners {
			wait = max(minSync, time.Duration(w.random.Int64N(int64(len(w.servers))*int64(syncSpread)+1)))
		}
		s.syncAt = w.now + int64(wait)
		s.callAt(s.syncAt, s.syncRoster)
	}
}
