// Package transport serves gRPC: the server and its services. A service validates a
// request, hands it to the runtime in the words of the domain, and turns results,
// events and errors back into messages. The parts are packages of their own below:
// a service converts with wire and listing, and follows threads with stream;
// interceptor and flow surround every call.
//
// It decides nothing about runs: what a thread may do next is the runtime's
// business, and every error it returns is one row of the table of package reason.
package transport
