// Package transport is the only package that speaks gRPC. It validates requests,
// hands them to the runtime in the words of the domain, and turns results, events
// and errors back into messages.
//
// It decides nothing about runs: what a thread may do next is the runtime's
// business, and every error it returns is one row of the table of package reason.
package transport
