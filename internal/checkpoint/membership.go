package checkpoint

// Membership is an optional part of a store that several servers share: each
// server publishes the capabilities of its workers and reads those of the
// others. It may lag by some seconds; only the placement of runs depends on it.
type Membership interface {
	// Register adds a server, under its name in Head.Owner, until the
	// registration is closed or the server misses its heartbeats. changed
	// is called when the capabilities or claims of another server change.
	// It must not block.
	Register(server string, changed func()) Registration
}

// Registration is a registered server. Its methods do not wait for the store.
type Registration interface {
	// SetCapabilities publishes the capabilities of the workers of this
	// server.
	SetCapabilities(served []Capability)
	// SetClaims publishes the leases of earlier servers that this server
	// knows.
	SetClaims(claims Claims)
	// OtherMembers lists the other known servers by name. The caller must
	// not change the list.
	OtherMembers() []Member
	// Close removes the server.
	Close()
}

// Member is a server with the capabilities of its workers.
type Member struct {
	Server       string
	Capabilities []Capability
	Claims       Claims
}

// Claims are a server's view of the tasks that workers may run for another
// server, by names that the servers agree on.
type Claims struct {
	Held    []string // tasks whose workers are attached to this server, which does not drive their runs
	Awaited []string // whose workers it waits for
}

// Capability is a node of a version of a graph that a worker can run. An empty
// version or node means all of them.
type Capability struct{ Graph, Version, Node string }

// Covers reports whether the capability includes a node, or work of no
// particular node, such as a reducer, which every worker of the graph can run.
func (c Capability) Covers(need Capability) bool {
	return c.Graph == need.Graph && (c.Version == "" || c.Version == need.Version) &&
		(c.Node == "" || c.Node == need.Node || need.Node == "")
}

// Covers reports whether a worker of the server has the capability.
func (m *Member) Covers(need Capability) bool {
	for _, served := range m.Capabilities {
		if served.Covers(need) {
			return true
		}
	}
	return false
}
