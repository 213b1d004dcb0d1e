package sim

import "time"

// Costs are what calls cost, as measured with one master and one server on the machine of
// docs/performance.md.
type Costs struct {
	Change     time.Duration // a script that changes a thread
	Read       time.Duration // a script that reads a record of a thread
	Look       time.Duration // a look at a partition in which nothing is due
	LookThread time.Duration // … for each thread that it returns
	LookSkip   time.Duration // … for each thread that it skips

	RosterAll    time.Duration // an exchange of the roster, without members
	RosterMember time.Duration // … for each member that it returns

	RoundTrip  time.Duration // of a call on the network
	NoAnswer   time.Duration // until a call to a master that is down has failed
	ServerWork time.Duration // of the processor of a server, for half of a question with its answer
	ServerMiss time.Duration // … for a thread that another server was faster with

	ThreadBytes int64 // of a parked thread in Redis
}

// MeasuredCosts returns the costs that were measured.
func MeasuredCosts() Costs {
	return Costs{
		Change: 82 * time.Microsecond, Read: 27 * time.Microsecond,
		Look: 7 * time.Microsecond, LookThread: 460 * time.Nanosecond, LookSkip: 10 * time.Nanosecond,
		RosterAll: 45 * time.Microsecond, RosterMember: 1100 * time.Nanosecond,
		RoundTrip: 300 * time.Microsecond, NoAnswer: 5 * time.Second,
		ServerWork: 400 * time.Microsecond, ServerMiss: 50 * time.Microsecond,
		ThreadBytes: 5514,
	}
}
