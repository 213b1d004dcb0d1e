// Package audit keeps records of calls: who called what, of which thread, and how it
// ended. A Log hands each record to the queue of every sink. A sink that is slow or
// broken holds up no call: what its queue has no room for is lost, and the sink gets a
// record of that gap later.
//
// A record has one form in text, a line of JSON (Line). The lines of a file are a
// chain: each has a number, and the digest of the line before it. Reader reads lines
// and checks the chain. Package file writes files and standard output, package otlp
// sends records to a collector of OpenTelemetry.
package audit
