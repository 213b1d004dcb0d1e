package checkpoint

// Roster is what a store has besides when several servers share it: each says
// for which nodes workers are attached to it, and learns what the others say.
// It may be some seconds behind, and nothing but the place where a run goes on
// depends on it.
type Roster interface {
	// Enlist puts a server on the roster, under the name by which it is known in
	// Head.Owner, until the post is closed or the server is not heard of any
	// more. changed is called when another one serves something else than
	// before. It must not block.
	Enlist(server string, changed func()) Post
}

// Post is the place of one server on the roster. Its methods don't wait for the
// store.
type Post interface {
	// Serve says what the workers of this server take from now on.
	Serve(served []Served)
	// Claim says which leases of an earlier server this one knows of from now on.
	Claim(claims Claims)
	// Others lists the other servers by name, as far as is known. Nobody may
	// change what it returns.
	Others() []Station
	// Close takes the server off the roster.
	Close()
}

// Station is a server and what its workers take.
type Station struct {
	Server string
	Serves []Served
	Claims Claims
}

// Claims are what a server knows of the tasks that workers may run for another
// server, by names that the servers agree on.
type Claims struct {
	Holds  []string // whose workers are attached to it, though it does not drive their runs
	Awaits []string // whose workers it waits for
}

// Served is what a worker takes: a node of a version of a graph. An empty
// version or node means all of them.
type Served struct{ Graph, Version, Node string }

// Takes reports whether that includes the work of a node, or of no node in
// particular, like a reducer, which every worker of its graph knows.
func (s Served) Takes(need Served) bool {
	return s.Graph == need.Graph && (s.Version == "" || s.Version == need.Version) &&
		(s.Node == "" || s.Node == need.Node || need.Node == "")
}

// Takes reports whether a worker of the server takes what is needed.
func (s *Station) Takes(need Served) bool {
	for _, served := range s.Serves {
		if served.Takes(need) {
			return true
		}
	}
	return false
}
