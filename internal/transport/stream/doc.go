// Package stream sends the events of a thread to a client. Stream, Resume and Watch
// differ only in where they begin and when they stop. A Registry knows all open
// streams and ends them when the server drains. A Sender hands messages to gRPC and
// detects a client that does not read. Events that a client has not taken stay in
// the log.
package stream
