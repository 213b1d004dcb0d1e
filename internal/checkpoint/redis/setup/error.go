package setup

import "fmt"

// Problem is the kind of problem for which a store can't be opened.
type Problem string

// The problems of servers and stores.
const (
	ProblemURL        Problem = "url"      // it can't be read
	ProblemAccess     Problem = "access"   // user, password or rights
	ProblemTLS        Problem = "tls"      // the handshake fails
	ProblemVersion    Problem = "version"  // the server is too old
	ProblemReplica    Problem = "replica"  // the server takes no changes
	ProblemEviction   Problem = "eviction" // the server evicts keys
	ProblemForeign    Problem = "foreign"  // the database of another program
	ProblemFormat     Problem = "format"   // a newer graphd wrote it, or another layout
	ProblemOlder      Problem = "older"    // an earlier graphd wrote it: it has to be migrated
	ProblemInUse      Problem = "in use"   // servers use it, which must not be
	ProblemNoMetadata Problem = "headless" // there are threads and no metadata
	ProblemLost       Problem = "lost"     // a part of it is gone
	ProblemKeys       Problem = "keys"     // its records don't open with the keys given
	ProblemMissing    Problem = "missing"  // nothing is stored there
)

// Error says why a store can't be opened, and how to correct it.
type Error struct {
	Server  string // its URL without the password
	Problem Problem
	Is      string
	Want    string
}

// Error names the server, the problem and the correction.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s: %s", e.Server, e.Is, e.Want) }
