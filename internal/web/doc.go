// Package web serves the API of a server over HTTP, for browsers: every method of its services
// that takes one request, over the Connect protocol (https://connectrpc.com/docs/protocol) in
// JSON or protobuf.
//
// A request becomes a call of the gRPC server of the same process, with the address and the TLS of
// the browser's connection. This server identifies, limits and records the call as it does all
// others, and no rule stands twice. A unary call is one of the handler; a stream goes over a gRPC
// connection in memory, of which each connection of a browser has one.
package web
