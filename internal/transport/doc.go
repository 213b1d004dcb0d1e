// Package transport serves gRPC: the server and its services. A service validates a
// request, hands it to the runtime in terms of the domain, and converts results,
// events and errors to messages. The packages below it are its parts: a service
// converts with wire and listing, and follows threads with stream. interceptor and
// flow wrap every call.
//
// It decides nothing about runs: the runtime decides what a thread may do next.
// Every error that transport returns is one row of the table of package reason.
package transport
