package server

import (
	"net/http"
	"net/http/pprof"
)

// registerProfiles lets the tools of Go look at the running server.
func registerProfiles(routes *http.ServeMux) {
	routes.HandleFunc("/debug/pprof/", pprof.Index)
	routes.HandleFunc("/debug/pprof/profile", pprof.Profile)
	routes.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	routes.HandleFunc("/debug/pprof/trace", pprof.Trace)
}
