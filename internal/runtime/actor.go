package runtime

// Actor is the authenticated caller of a request, as the server found it out: no request
// of a client can set it. The zero value is a caller that the server does not know.
type Actor struct {
	Name   string
	Groups []string
	How    string // kind of the credential that identified the caller
	Method string // method that was called, like graphd.v1.GraphService/Resume
}
