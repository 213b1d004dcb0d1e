// Package agentserver serves the HTTP API of LangGraph Server: assistants, threads, runs and
// streams of server-sent events. It keeps nothing: each request makes calls of graphd's own
// services through a web.Door, so that callers, their rights and the limits are those of gRPC.
//
// routes.go lists the endpoints. A run of this API is one leg of a run of graphd, see leg.go.
package agentserver
