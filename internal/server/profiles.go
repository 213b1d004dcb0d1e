package server

import (
	"net/http"
	"net/http/pprof"
)

// registerProfiles serves Go's profiles of the running server.
func registerProfiles(routes *http.ServeMux) {
	routes.HandleFunc("/debug/pprof/", pprof.Index)
	routes.HandleFunc("/debug/pprof/profile", pprof.Profile)
	routes.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	routes.HandleFunc("/debug/pprof/trace", pprof.Trace)
}
