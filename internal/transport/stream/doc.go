// Package stream sends the events of a thread to a client: Stream, Resume and Watch differ
// in where they begin and when they stop, nothing else. A Registry knows all open streams
// and ends them when the server drains; a Sender hands messages to gRPC and notices a
// client that does not read. What a client has not taken stays in the log.
package stream
