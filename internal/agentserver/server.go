package agentserver

import (
	"errors"
	"net/http"
	"time"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/web"
)

// Options make a Server. All fields but Origins and Hosts must be set.
type Options struct {
	// Door makes the calls.
	Door *web.Door
	// Origins are the sites whose pages may call; "*" stands for all.
	Origins []string
	// Hosts knows the names of the server; nil = it may have any.
	Hosts *web.Guard
	// Version is that of the program.
	Version string
	// StallTimeout is how long a client may take no event of a stream.
	StallTimeout time.Duration
	// CheckWebhook refuses a URL to which nothing is sent.
	CheckWebhook func(url string) error
	// OnPanic is told of a panic, which ends its request alone.
	OnPanic func(*contain.PanicError)
}

// Server serves the API. It is an http.Handler.
type Server struct {
	opts  Options
	mux   *http.ServeMux
	scans scanSlots
}

// New makes a Server.
func New(o Options) *Server {
	s := &Server{opts: o, mux: http.NewServeMux(), scans: newScanSlots()}
	for _, r := range listRoutes() {
		s.mux.HandleFunc(r.pattern, s.wrapHandler(r.handle))
	}
	return s
}

// ServeHTTP serves a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if s.admitHost(w, r) && s.admitOrigin(w, r) {
		s.mux.ServeHTTP(w, r)
	}
}

// wrapHandler makes a handler of net/http: errors become answers, and a panic ends its request alone.
func (s *Server) wrapHandler(handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{server: s, w: w, r: r}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // each write has its own
		var err error
		if p := contain.Call(func() { err = c.serve(handle) }); p != nil {
			s.opts.OnPanic(p)
			err = newError(http.StatusInternalServerError, "INTERNAL", "the server failed in this request")
		}
		if errors.Is(err, errBrokenOff) || err != nil && c.hasBegun { // what the client has is not whole
			panic(http.ErrAbortHandler) //nolint:forbidigo // net/http cuts the connection then
		}
		if err != nil {
			c.writeError(err)
		}
	}
}
