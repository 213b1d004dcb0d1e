// Package interceptor wraps every call of the server: it gives the call an id and a
// record, counts and logs it, bounds and checks its messages, and turns its error into a
// status. Services complete the record with the thread and the run that a call is about.
package interceptor
