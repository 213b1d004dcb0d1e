// Package web serves the API of a server over HTTP, for browsers: every method of its services
// that takes one request, over the Connect protocol (https://connectrpc.com/docs/protocol) in
// JSON or protobuf.
//
// A request becomes a call of the gRPC server of the same process. Each connection of a browser
// has a gRPC connection in memory with the browser's address and TLS, so that this server
// identifies, limits and records its calls as it does all others, and no rule stands twice.
package web
